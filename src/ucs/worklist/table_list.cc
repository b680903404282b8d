#include "ucs/worklist/table_list.hpp"

#include <algorithm>

#include "ucs/base/bits.hpp"
#include "ucs/base/log.hpp"

namespace cuda_nc::worklist {
namespace {

constexpr uint64_t first_part_frames = 16;  // small, so that the first kernel starts early
constexpr uint64_t largest_part_frames = 256;
constexpr size_t table_alignment = 256;

// A unit has a few blocks: the index costs at most 2 bytes a block, a search 2 or 3 steps, each of
// which waits for memory.
constexpr uint32_t least_unit_log2 = 6;
constexpr uint64_t blocks_per_unit = 2;

}  // namespace

// Calls action(pointer to the view's table, entries) for each table that the layout has.
template <class Action>
void table_list::for_each_table(Action &&action) {
    block_tables &t = view_.tables;
    const block_tables &host = source_->view().tables;
    const uint64_t blocks = view_.num_blocks;
    auto visit = [&](auto &table, auto *there, uint64_t entries) {
        if (there != nullptr) {
            action(table, entries);
        }
    };
    visit(t.frame_displacement, host.frame_displacement, frames_);
    visit(t.frame_packed, host.frame_packed, frames_ + 1);
    visit(t.displacement, host.displacement, blocks);
    visit(t.packed, host.packed, blocks);
    visit(t.wide_displacement, host.wide_displacement, blocks);
    visit(t.wide_packed, host.wide_packed, blocks + 1);
    if (num_units_ != 0) {
        action(t.unit_block, num_units_);
    }
}

table_list::table_list(list_services &services, const layout_ref &source)
    : services_(services),
      hash_(source->hash()),
      view_(source->view()),
      frames_(divide_up(view_.num_blocks, frame_blocks)),
      source_(source) {
    view_.proof = nullptr;  // the layout's, which may end before this list
    choose_units();
    units_.reserve(num_units_);  // never moves: copies may read it
}

void table_list::choose_units() noexcept {
    view_.tables.unit_block = nullptr;
    if (view_.block_length != 0) {
        return;
    }
    uint64_t mean = view_.list_size / view_.num_blocks + 1;
    view_.tables.unit_log2 = std::max(least_unit_log2, log2_ceil(mean * blocks_per_unit));
    num_units_ = ((view_.list_size - 1) >> view_.tables.unit_log2) + 2;
}

ucs_status_t table_list::make(list_services &services, const layout_ref &source,
                              std::shared_ptr<table_list> *list_p) {
    // Kernels compute numbers of blocks behind the last one, which they do not read.
    constexpr uint64_t beyond_the_last = 32;
    if (source->view().num_blocks > (uint64_t{1} << 32) - beyond_the_last) {
        return UCS_ERR_UNSUPPORTED;
    }
    std::shared_ptr<table_list> made(new table_list(services, source));
    size_t size = 0;
    made->for_each_table([&](auto *&table, uint64_t entries) {
        size += round_up(entries * sizeof(*table), table_alignment);
    });
    ucs_status_t status = services.pool.acquire(size, made->memory_);
    if (status != UCS_OK) {
        return status;
    }
    const char *at = made->memory_.address();
    made->for_each_table([&](auto *&table, uint64_t entries) {
        table = reinterpret_cast<std::remove_reference_t<decltype(table)>>(at);
        at += round_up(entries * sizeof(*table), table_alignment);
    });
    *list_p = std::move(made);
    return UCS_OK;
}

table_list::~table_list() {
    // All kernels that use the list are done, as nobody holds it any more. But an upload that none
    // of them needed may still write into its memory.
    for (upload &one : uploads_) {
        one.done->synchronize();
    }
}

bool table_list::serves(const layout &wanted) const noexcept {
    const layout_view &other = wanted.view();
    return hash_ == wanted.hash() && view_.packed_size == other.packed_size &&
           view_.list_size == other.list_size && view_.num_blocks == other.num_blocks &&
           view_.block_length == other.block_length && view_.num_dims == other.num_dims &&
           view_.first_displacement == other.first_displacement;
}

table_list::source_state table_list::release_source() noexcept {
    std::unique_lock<std::mutex> guard(mutex_, std::try_to_lock);
    if (!guard.owns_lock()) {
        return source_state::needed;
    }
    for (size_t i = 0; i < uploads_.size();) {
        if (uploads_[i].done->query() == UCS_OK) {
            uploads_.erase(uploads_.begin() + static_cast<std::ptrdiff_t>(i));
        } else {
            ++i;
        }
    }
    release_source_if_complete();
    if (source_ == nullptr) {
        return source_state::released;
    }
    const bool alone = source_.use_count() == 1;
    return alone && (broken() || uploads_.empty()) ? source_state::abandoned : source_state::needed;
}

void table_list::release_source_if_complete() noexcept {
    if (source_ != nullptr && ready_frames_ == frames_ && uploads_.empty() && !broken()) {
        source_.reset();
        units_ = std::vector<uint32_t>();
        uploads_ = std::vector<upload>();
    }
}

uint64_t table_list::frames_needed(uint64_t packed_end) const noexcept {
    if (packed_end == 0) {
        return 0;
    }
    if (view_.num_dims != 0 || packed_end >= view_.list_size ||
        view_.tables.wide_displacement != nullptr) {
        return frames_;
    }
    return source_->view().find_block(packed_end - 1) / frame_blocks + 1;
}

// Rounds up to a part of growing size: few copies, none of which delays the kernel behind it by
// much.
uint64_t table_list::with_next_part(uint64_t frames) const noexcept {
    const uint64_t part = std::min(largest_part_frames, std::max(first_part_frames, ready_frames_));
    return std::min(frames_, std::max(frames, ready_frames_ + part));
}

uint64_t table_list::part_end(uint64_t begin, uint64_t end) const noexcept {
    std::lock_guard<std::mutex> guard(mutex_);
    if (source_ == nullptr) {
        return end;
    }
    const layout_view &host = source_->view();
    const uint64_t needed = frames_needed(end);
    const uint64_t next = with_next_part(frames_needed(begin + 1));
    if (needed <= ready_frames_ || needed <= next) {
        return end;
    }
    const uint64_t ready = host.block_packed(ready_frames_ * frame_blocks);
    return ready > begin ? ready : host.block_packed(next * frame_blocks);
}

// Extends the host's unit index so that it brackets every offset below `packed_end`.
void table_list::index_units(uint64_t packed_end) {
    const layout_view &host = source_->view();
    const uint64_t wanted = std::min(num_units_, ((packed_end - 1) >> view_.tables.unit_log2) + 2);
    while (units_.size() < wanted) {
        uint64_t offset = static_cast<uint64_t>(units_.size()) << view_.tables.unit_log2;
        if (offset >= view_.list_size) {
            unit_cursor_ = view_.num_blocks - 1;
        }
        while (unit_cursor_ + 1 < view_.num_blocks &&
               host.block_packed(unit_cursor_ + 1) <= offset) {
            ++unit_cursor_;
        }
        units_.push_back(static_cast<uint32_t>(unit_cursor_));
    }
}

// Entries [begin, end) of one table.
ucs_status_t table_list::send(gpu::stream &on, const void *device_table, const void *host_table,
                              size_t entry, uint64_t begin, uint64_t end) noexcept {
    if (host_table == nullptr || begin >= end) {
        return UCS_OK;
    }
    services_.bytes_moved.fetch_add((end - begin) * entry, std::memory_order_relaxed);
    // The view's tables are const for those who read them; this memory is our own.
    return services_.staging.copy(
        on, const_cast<char *>(static_cast<const char *>(device_table)) + begin * entry,
        static_cast<const char *>(host_table) + begin * entry, (end - begin) * entry);
}

ucs_status_t table_list::upload_frames(gpu::stream &on, uint64_t frames) noexcept {
    const layout_view &host = source_->view();
    const block_tables &from = host.tables, &to = view_.tables;
    const uint64_t blocks = view_.num_blocks;
    const uint64_t begin = ready_frames_ * frame_blocks;
    const uint64_t end = std::min(blocks, frames * frame_blocks);
    ucs_status_t status = UCS_OK;
    auto send_table = [&](const auto *there, const auto *here, uint64_t first, uint64_t last) {
        if (status == UCS_OK) {
            status = send(on, there, here, sizeof(*here), first, last);
        }
    };
    if (ready_frames_ == 0) {  // a search reads these as a whole
        send_table(to.frame_displacement, from.frame_displacement, 0, frames_);
        send_table(to.frame_packed, from.frame_packed, 0, frames_ + 1);
        send_table(to.wide_packed, from.wide_packed, 0, blocks + 1);
    }
    send_table(to.displacement, from.displacement, begin, end);
    send_table(to.packed, from.packed, begin, end);
    send_table(to.wide_displacement, from.wide_displacement, begin, end);
    if (num_units_ != 0 && status == UCS_OK) {
        index_units(host.block_packed(end));  // within reserved memory: cannot throw
        send_table(to.unit_block, const_cast<const uint32_t *>(units_.data()), units_sent_,
                   units_.size());
        units_sent_ = units_.size();
    }
    return status;
}

// Orders `on` behind other streams' unfinished uploads of frames below `frames`.
ucs_status_t table_list::order_behind_uploads(gpu::stream &on, uint64_t frames) noexcept {
    for (size_t i = 0; i < uploads_.size();) {
        ucs_status_t state = uploads_[i].done->query();
        if (state == UCS_OK) {
            uploads_.erase(uploads_.begin() + static_cast<std::ptrdiff_t>(i));
            continue;
        }
        if (state != UCS_INPROGRESS) {  // its stream failed: the tables may be incomplete
            broken_.store(true, std::memory_order_relaxed);
            return UCS_ERR_NO_MEMORY;
        }
        if (uploads_[i].on != &on && uploads_[i].first_frame < frames) {
            ucs_status_t status = on.wait(*uploads_[i].done);
            if (status != UCS_OK) {
                return status;
            }
        }
        ++i;
    }
    return UCS_OK;
}

ucs_status_t table_list::prepare(gpu::stream &on, uint64_t packed_end) noexcept {
    std::lock_guard<std::mutex> guard(mutex_);
    if (broken()) {
        return UCS_ERR_NO_MEMORY;
    }
    if (source_ == nullptr) {
        return UCS_OK;
    }
    uint64_t frames = frames_needed(packed_end);
    ucs_status_t status = order_behind_uploads(on, frames);
    if (status != UCS_OK) {
        return status;
    }
    if (frames <= ready_frames_) {
        release_source_if_complete();
        return UCS_OK;
    }
    frames = with_next_part(frames);
    upload record{&on, nullptr, ready_frames_};
    status = services_.device.create_event(&record.done);
    if (status != UCS_OK) {
        return status;
    }
    try {
        uploads_.reserve(uploads_.size() + 1);
    } catch (...) {
        return UCS_ERR_NO_MEMORY;
    }
    status = upload_frames(on, frames);
    ucs_status_t marked = on.record(*record.done);
    if (status != UCS_OK || marked != UCS_OK) {
        broken_.store(true, std::memory_order_relaxed);
        if (marked == UCS_OK) {
            uploads_.push_back(std::move(record));  // the destructor waits for what was enqueued
        } else {
            memory_.keep_for_ever();
        }
        nc_error(
            "the work list of a layout (%s) could not be moved to GPU %d: %s; messages under "
            "way with it go by slower ways, later ones get another list",
            source_->describe().c_str(), services_.device.properties().ordinal,
            status_text(status != UCS_OK ? status : marked));
        return status != UCS_OK ? status : marked;
    }
    uploads_.push_back(std::move(record));
    ready_frames_ = frames;
    return UCS_OK;
}

bool table_list::is_ready(uint64_t packed_end) noexcept {
    std::lock_guard<std::mutex> guard(mutex_);
    if (broken() || source_ == nullptr) {
        return !broken();
    }
    const uint64_t frames = frames_needed(packed_end);
    return frames <= ready_frames_ &&
           std::all_of(uploads_.begin(), uploads_.end(), [frames](const upload &one) {
               return one.first_frame >= frames || one.done->query() == UCS_OK;
           });
}

}  // namespace cuda_nc::worklist
