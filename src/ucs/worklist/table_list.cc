#include "ucs/worklist/table_list.hpp"

#include <algorithm>

#include "ucs/base/log.hpp"

namespace cuda_nc::worklist {
namespace {

constexpr uint64_t first_part_tiles = 16;  // small, so that the first kernel starts early
constexpr uint64_t largest_part_tiles = 256;
constexpr size_t table_alignment = 256;

// A unit is a few blocks: at most 2 bytes of index a block, 2 or 3 steps of search.
constexpr uint32_t least_unit_log2 = 10;
constexpr uint64_t blocks_per_unit = 2;

uint64_t round_up(uint64_t value, uint64_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

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
    visit(t.tile_displacement, host.tile_displacement, tiles_);
    visit(t.tile_packed, host.tile_packed, tiles_ + 1);
    visit(t.displacement, host.displacement, blocks);
    visit(t.packed, host.packed, blocks);
    visit(t.wide_displacement, host.wide_displacement, blocks);
    visit(t.wide_packed, host.wide_packed, blocks + 1);
    if (num_units_ != 0) {
        action(t.unit_block, num_units_);
    }
}

table_list::table_list(gpu::device &where, upload_staging &staging,
                       std::atomic<uint64_t> *bytes_moved, layout_ref source)
    : where_(where),
      staging_(staging),
      bytes_moved_(bytes_moved),
      source_(std::move(source)),
      view_(source_->view()),
      tiles_((view_.num_blocks + tile_blocks - 1) / tile_blocks) {
    choose_units();
    units_.reserve(num_units_);  // never moves: copies may read it
}

void table_list::choose_units() noexcept {
    view_.tables.unit_block = nullptr;
    if (view_.block_length != 0) {
        return;
    }
    uint64_t mean = view_.list_size / view_.num_blocks + 1;
    view_.tables.unit_log2 = least_unit_log2;
    while ((uint64_t{1} << view_.tables.unit_log2) < mean * blocks_per_unit) {
        ++view_.tables.unit_log2;
    }
    num_units_ = ((view_.list_size - 1) >> view_.tables.unit_log2) + 2;
}

ucs_status_t table_list::make(gpu::device &where, upload_staging &staging,
                              std::atomic<uint64_t> *bytes_moved, const layout_ref &source,
                              std::shared_ptr<table_list> *list_p) {
    constexpr uint64_t beyond_the_last = 32;  // blocks that kernels number, and do not read
    if (source->view().num_blocks > (uint64_t{1} << 32) - beyond_the_last) {
        return UCS_ERR_UNSUPPORTED;
    }
    std::shared_ptr<table_list> made(new table_list(where, staging, bytes_moved, source));
    size_t size = 0;
    made->for_each_table([&](auto *&table, uint64_t entries) {
        size += round_up(entries * sizeof(*table), table_alignment);
    });
    ucs_status_t status = where.allocate(size, &made->memory_);
    if (status != UCS_OK) {
        return status;
    }
    const char *at = made->memory_->address();
    made->for_each_table([&](auto *&table, uint64_t entries) {
        table = reinterpret_cast<std::remove_reference_t<decltype(table)>>(at);
        at += round_up(entries * sizeof(*table), table_alignment);
    });
    *list_p = std::move(made);
    return UCS_OK;
}

table_list::~table_list() {
    // Kernels of this list are done (its users say so by letting go), but an upload that none of
    // them needed may still write into the memory.
    for (upload &one : uploads_) {
        one.done->synchronize();
    }
}

uint64_t table_list::tiles_needed(uint64_t packed_end) const noexcept {
    if (packed_end == 0) {
        return 0;
    }
    if (view_.num_dims != 0 || packed_end >= view_.list_size ||
        view_.tables.wide_displacement != nullptr) {
        return tiles_;
    }
    return source_->view().find_block(packed_end - 1) / tile_blocks + 1;
}

// More than is asked for, in growing parts: few copies, and none that delays the kernel behind it
// by much.
uint64_t table_list::with_next_part(uint64_t tiles) const noexcept {
    const uint64_t part = std::min(largest_part_tiles, std::max(first_part_tiles, ready_tiles_));
    return std::min(tiles_, std::max(tiles, ready_tiles_ + part));
}

uint64_t table_list::part_end(uint64_t begin, uint64_t end) const noexcept {
    std::lock_guard<std::mutex> guard(mutex_);
    const layout_view &host = source_->view();
    const uint64_t needed = tiles_needed(end);
    const uint64_t next = with_next_part(tiles_needed(begin + 1));
    if (needed <= ready_tiles_ || needed <= next) {
        return end;
    }
    const uint64_t ready = host.block_packed(ready_tiles_ * tile_blocks);
    return ready > begin ? ready : host.block_packed(next * tile_blocks);
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
    bytes_moved_->fetch_add((end - begin) * entry, std::memory_order_relaxed);
    // The view's tables are const for those who read them; this memory is our own.
    return staging_.copy(
        on, const_cast<char *>(static_cast<const char *>(device_table)) + begin * entry,
        static_cast<const char *>(host_table) + begin * entry, (end - begin) * entry);
}

ucs_status_t table_list::upload_tiles(gpu::stream &on, uint64_t tiles) noexcept {
    const layout_view &host = source_->view();
    const block_tables &from = host.tables, &to = view_.tables;
    const uint64_t blocks = view_.num_blocks;
    const uint64_t begin = ready_tiles_ * tile_blocks;
    const uint64_t end = std::min(blocks, tiles * tile_blocks);
    ucs_status_t status = UCS_OK;
    auto send_table = [&](const auto *there, const auto *here, uint64_t first, uint64_t last) {
        if (status == UCS_OK) {
            status = send(on, there, here, sizeof(*here), first, last);
        }
    };
    if (ready_tiles_ == 0) {  // searched as a whole: complete from the start
        send_table(to.tile_displacement, from.tile_displacement, 0, tiles_);
        send_table(to.tile_packed, from.tile_packed, 0, tiles_ + 1);
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

// Other streams' uploads of tiles below `tiles` that may still be on their way.
ucs_status_t table_list::order_behind_uploads(gpu::stream &on, uint64_t tiles) noexcept {
    for (size_t i = 0; i < uploads_.size();) {
        ucs_status_t state = uploads_[i].done->query();
        if (state == UCS_OK) {
            uploads_.erase(uploads_.begin() + static_cast<std::ptrdiff_t>(i));
            continue;
        }
        if (state != UCS_INPROGRESS) {  // its stream failed: what of the part has come is not known
            broken_.store(true, std::memory_order_relaxed);
            return UCS_ERR_NO_MEMORY;
        }
        if (uploads_[i].on != &on && uploads_[i].first_tile < tiles) {
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
    uint64_t tiles = tiles_needed(packed_end);
    ucs_status_t status = order_behind_uploads(on, tiles);
    if (status != UCS_OK || tiles <= ready_tiles_) {
        return status;
    }
    tiles = with_next_part(tiles);
    upload record{&on, nullptr, ready_tiles_};
    status = where_.create_event(&record.done);
    if (status != UCS_OK) {
        return status;
    }
    try {
        uploads_.reserve(uploads_.size() + 1);
    } catch (...) {
        return UCS_ERR_NO_MEMORY;
    }
    status = upload_tiles(on, tiles);
    ucs_status_t marked = on.record(*record.done);
    if (status != UCS_OK || marked != UCS_OK) {
        broken_.store(true, std::memory_order_relaxed);
        if (marked == UCS_OK) {
            uploads_.push_back(std::move(record));  // what was enqueued is awaited at the end
        }
        nc_error("the work list of a %s layout could not be moved to GPU %d: %s",
                 source_->describe().c_str(), where_.properties().ordinal,
                 status_text(status != UCS_OK ? status : marked));
        return status != UCS_OK ? status : marked;
    }
    uploads_.push_back(std::move(record));
    ready_tiles_ = tiles;
    return UCS_OK;
}

}  // namespace cuda_nc::worklist
