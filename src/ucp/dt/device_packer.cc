#include "ucp/dt/device_packer.hpp"

#include <algorithm>
#include <cstring>

#include "ucp/dt/address.hpp"
#include "ucs/base/settings.hpp"
#include "ucs/model/choices.hpp"

namespace cuda_nc::dt {
namespace {

std::atomic<uint64_t> next_serial{1};

// By this GPU's figures. Kernels reach pinned memory at the bus's full rate where they use whole
// words. For bytes or short words of scattered blocks their requests are too small for the bus:
// then pack within GPU memory, and let a copy engine cross the bus.
bool choose_zero_copy(gpu::direction dir, const layout &what, int ordinal) noexcept {
    const char setting = config().zero_copy[0];  // of "auto", "y" and "n"
    if (setting != 'a') {
        return setting == 'y';
    }
    return !model::prefers_staging(model::choices_of(ordinal), dir, what.view().align_log2,
                                   what.packed_size(), what.total_blocks());
}

// A limit for kernels on pinned memory, which wait for the bus: 8 of an H200's multiprocessors fill
// it (bench/results, sectors), lists of single bytes take more. 0: no limit, for all other kernels.
unsigned most_sms(bool staged, uint64_t length) noexcept {
    constexpr unsigned of_bus = 32;
    constexpr uint64_t short_work = 256 << 10;
    return config().max_sms != 0 || staged || length < short_work ? config().max_sms : of_bus;
}

}  // namespace

ucs_status_t device_packer::open(gpu::direction dir, layout_ref &&what, char *base,
                                 const gpu::memory_info &memory) noexcept {
    ordinal_ = std::max(memory.device, 0);
    staging_ = device_staging::get(ordinal_);
    if (staging_ == nullptr) {
        return UCS_ERR_NO_DEVICE;
    }
    staging_->reserve_slow_paths();
    dir_ = dir;
    into_own_memory_ = dir == gpu::direction::unpack && memory.kind == gpu::memory_kind::device;
    base_ = base;
    allocation_ = memory.allocation;
    layout_ = std::move(what);
    serial_ = 0;
    stream_ = nullptr;
    has_kernels_ = true;
    if (worklist::needs_tables(*layout_) &&
        worklist::acquire(staging_->device(), layout_, &list_) != UCS_OK) {
        list_.reset();
        has_kernels_ = false;
    }
    return UCS_OK;
}

void device_packer::close() noexcept {
    list_.reset();
    layout_.reset();
}

// A copy may not go from one allocation into the next; a kernel may.
bool device_packer::is_copied() const noexcept {
    const layout_view &all = layout_->view();
    return all.kind == shape::contiguous &&
           allocation_.holds(reinterpret_cast<uintptr_t>(base_) +
                                 static_cast<uintptr_t>(all.block_displacement(0)),
                             all.packed_size);
}

bool device_packer::zero_copy() const noexcept {
    return choose_zero_copy(dir_, *layout_, ordinal_);
}

shared_stream &device_packer::stream() noexcept {
    if (stream_ == nullptr) {
        stream_ = is_copied() ? &staging_->pick_copies_stream() : &staging_->pick_stream(dir_);
    }
    return *stream_;
}

gpu::stream *device_packer::ready(shared_stream &shared) noexcept {
    gpu::stream *on = shared.ready(staging_->device());
    stream_ = on != nullptr ? stream_ : nullptr;
    return on;
}

gpu::transfer device_packer::describe(const gpu::memory &packed,
                                      const staged_range &range) const noexcept {
    gpu::transfer work;
    work.dir = dir_;
    work.layout = view();
    work.base = base_;
    work.packed = packed.address() + range.position;
    work.packed_offset = range.offset;
    work.length = range.length;
    work.into_own_memory = into_own_memory_;
    return work;
}

ucs_status_t device_packer::enqueue_range(gpu::stream &stream, staging_buffer &buffer,
                                          const staged_range &range, bool staged,
                                          bool only) noexcept {
    if (is_copied()) {
        return enqueue_blocks(stream, *layout_, range.offset,
                              buffer.pinned->address() + range.position, range.length);
    }
    gpu::transfer work = describe(staged ? *buffer.device : *buffer.pinned, range);
    if (only && !(staged && dir_ == gpu::direction::pack)) {  // no work follows this launch
        buffer.ends.renew();
        work.ends = &buffer.ends;
    }
    work.max_sms = most_sms(staged, range.length);
    char *pinned = buffer.pinned->address() + range.position;
    ucs_status_t status = UCS_OK;
    if (staged && dir_ == gpu::direction::unpack) {
        status = stream.copy(work.packed, pinned, range.length);
    }
    if (status == UCS_OK) {
        status = stream.launch(work);
    }
    if (staged && status == UCS_OK && dir_ == gpu::direction::pack) {
        status = stream.copy(pinned, work.packed, range.length);
    }
    return status;
}

bool device_packer::give_order(staging_buffer &buffer, const staged_range &range) noexcept {
    if (!has_kernels_ || (!is_copied() && !zero_copy()) ||
        !tables_ready(range.offset + range.length)) {
        return false;
    }
    buffer.ordered = range;
    gpu::giving how;
    how.to_present_kernel = is_copied();
    return buffer.order.give(staging_->device(), describe(*buffer.pinned, range), how);
}

ucs_status_t device_packer::enqueue(staging_buffer &buffer, const staged_range *ranges,
                                    size_t num_ranges, bool *enqueued_p, bool *lost_p) noexcept {
    buffer.order.forget();
    if (num_ranges == 1 && give_order(buffer, ranges[0])) {
        *enqueued_p = true;
        *lost_p = false;
        return UCS_OK;
    }
    const ucs_status_t status = launch(buffer, ranges, num_ranges, enqueued_p, lost_p);
    if (*enqueued_p && num_ranges == 1) {
        gpu::given_orders::launched_instead(staging_->device());
    }
    return status;
}

ucs_status_t device_packer::launch(staging_buffer &buffer, const staged_range *ranges,
                                   size_t num_ranges, bool *enqueued_p, bool *lost_p) noexcept {
    *enqueued_p = *lost_p = false;
    bool staged = !is_copied() && !zero_copy() && staging_->ensure_device_part(buffer);
    uint64_t packed_end = 0;
    for (size_t i = 0; i < num_ranges; ++i) {
        packed_end = std::max(packed_end, ranges[i].offset + ranges[i].length);
    }
    shared_stream &shared = stream();
    ucs_status_t status, marked;
    {
        std::lock_guard<std::mutex> guard(shared.mutex);
        gpu::stream *on = ready(shared);
        if (on == nullptr) {
            return UCS_ERR_NO_RESOURCE;
        }
        buffer.ends.count = 0;
        status = prepare_tables(*on, packed_end);
        if (status != UCS_OK) {
            return status;
        }
        for (size_t i = 0; i < num_ranges && status == UCS_OK; ++i) {
            status = enqueue_range(*on, buffer, ranges[i], staged, num_ranges == 1);
        }
        if (status != UCS_OK) {
            buffer.ends.count = 0;
        }
        marked = on->record(*buffer.done);
    }
    *enqueued_p = marked == UCS_OK;
    *lost_p = marked != UCS_OK;
    if (*lost_p) {
        shared.give_up();  // waits for its work, which uses the user's memory
    }
    return status != UCS_OK ? status : marked;
}

// Twice where it fails: give_up() waits for what was enqueued the first time, and these bytes are
// the same. (The peer has moved them for us, or waits for them, so there is no other way.)
template <typename F>
ucs_status_t device_packer::enqueue_with_end(gpu::event &done, F &&enqueue) noexcept {
    ucs_status_t status = UCS_ERR_NO_RESOURCE;
    for (int times = 0; times < 2 && status != UCS_OK; ++times) {
        shared_stream &shared = stream();
        {
            std::lock_guard<std::mutex> guard(shared.mutex);
            gpu::stream *on = ready(shared);
            if (on == nullptr) {
                return UCS_ERR_NO_RESOURCE;
            }
            status = enqueue(*on);
            if (status == UCS_OK) {
                status = on->record(done);
            }
        }
        if (status != UCS_OK) {
            shared.give_up();
        }
    }
    return status;
}

ucs_status_t device_packer::enqueue_packed(uint64_t offset, uint64_t length, char *packed,
                                           gpu::event &done) noexcept {
    if (!has_kernels_) {
        return UCS_ERR_NO_RESOURCE;
    }
    gpu::transfer work;
    work.dir = dir_;
    work.base = base_;
    work.packed = packed;
    work.packed_offset = offset;
    work.length = length;
    work.max_sms = config().max_sms;
    return enqueue_with_end(done, [&](gpu::stream &on) {
        const bool copied = is_copied();
        ucs_status_t status = prepare_tables(on, offset + length);
        if (status == UCS_OK && !copied) {
            work.layout = view();
            status = on.launch(work);
        }
        if (status != UCS_OK || copied) {
            status = enqueue_blocks(on, *layout_, offset, packed, length);
        }
        return status;
    });
}

ucs_status_t device_packer::enqueue_copies(uint64_t offset, uint64_t length, char *packed,
                                           bool in_memory_order, gpu::event &done) noexcept {
    const layout &ordered = in_memory_order ? what().in_memory_order() : what();
    return enqueue_with_end(
        done, [&](gpu::stream &on) { return enqueue_blocks(on, ordered, offset, packed, length); });
}

ucs_status_t device_packer::enqueue_first(gpu::stream &on, uint64_t length, char *packed,
                                          const gpu::memory *by) noexcept {
    if (is_copied()) {
        return enqueue_blocks(on, *layout_, 0, packed, length);
    }
    ucs_status_t status = prepare_tables(on, length);
    // The pieces take turns in the one memory between: the stream orders them.
    const uint64_t most = by != nullptr ? by->size() : length;
    for (uint64_t offset = 0; offset < length && status == UCS_OK;) {
        gpu::transfer work;
        work.dir = dir_;
        work.layout = view();
        work.base = base_;
        work.packed = by != nullptr ? by->address() : packed + offset;
        work.packed_offset = offset;
        work.length = std::min(most, length - offset);
        work.max_sms = config().max_sms;
        if (by != nullptr && dir_ == gpu::direction::unpack) {
            status = on.copy(work.packed, packed + offset, work.length);
        }
        status = status == UCS_OK ? on.launch(work) : status;
        if (by != nullptr && dir_ == gpu::direction::pack && status == UCS_OK) {
            status = on.copy(packed + offset, work.packed, work.length);
        }
        offset += work.length;
    }
    return status;
}

ucs_status_t device_packer::order_first(const gpu::transfer &work) noexcept {
    gpu::given_orders order;
    gpu::giving how;
    how.to_present_kernel = is_copied();
    return tables_ready(work.length) && order.give(staging_->device(), work, how)
               ? order.await()
               : UCS_ERR_CANCELED;
}

ucs_status_t device_packer::move_packed(uint64_t length, char *packed,
                                        gpu::memory_kind lies_in) noexcept {
    if (!has_kernels_) {
        return UCS_ERR_NO_RESOURCE;
    }
    const bool staged = gpu::is_on_host(lies_in) && !is_copied() && !zero_copy();
    if (!staged) {
        gpu::transfer work;
        work.dir = dir_;
        work.layout = view();
        work.base = base_;
        work.packed = packed;
        work.length = length;
        work.into_own_memory =
            dir_ == gpu::direction::unpack ? into_own_memory_ : lies_in == gpu::memory_kind::device;
        const ucs_status_t status = order_first(work);
        if (status != UCS_ERR_CANCELED) {
            return status;
        }
    }
    std::unique_ptr<gpu::completion> done = staging_->acquire_completion();
    if (done == nullptr) {
        return UCS_ERR_NO_RESOURCE;
    }
    constexpr uint64_t most = 2 << 20, least = 64 << 10;
    staging_buffer *between = staged ? staging_->acquire(std::min(most, length), least) : nullptr;
    const bool has_between = between != nullptr && staging_->ensure_device_part(*between);
    ucs_status_t status = enqueue_with_end(*done->mark, [&](gpu::stream &on) {
        return enqueue_first(on, length, packed, has_between ? between->device.get() : nullptr);
    });
    gpu::given_orders::launched_instead(staging_->device());
    if (status == UCS_OK) {
        status = done->mark->synchronize();
        if (status != UCS_OK) {
            stream().give_up();  // waits for its work
        }
        staging_->release_completion(std::move(done));
    }
    if (between != nullptr) {
        staging_->release(between);
    }
    return status;
}

ucs_status_t device_packer::prepare_pipe(gpu::pipe_work &work, gpu::stream &on,
                                         bool in_memory_order) noexcept {
    if (!has_kernels_) {
        return UCS_ERR_NO_RESOURCE;
    }
    ucs_status_t status = prepare_tables(on, work.packed_offset + work.length);
    if (status == UCS_OK) {
        fill_in(work, in_memory_order);
    }
    return status;
}

ucs_status_t device_packer::describe_pipe(gpu::pipe_work &work, bool in_memory_order) noexcept {
    if (!has_kernels_ || !tables_ready(work.packed_offset + work.length)) {
        return UCS_INPROGRESS;
    }
    fill_in(work, in_memory_order);
    return UCS_OK;
}

void device_packer::fill_in(gpu::pipe_work &work, bool in_memory_order) const noexcept {
    work.dir = dir_;
    // Listed blocks, whose tables are on a GPU, are never reordered: then this is what() itself.
    const layout &ordered = what().in_memory_order();
    const bool reorder = in_memory_order && &ordered != &what();
    work.layout = reorder ? &ordered.view() : &view();
    work.on_host = reorder ? &ordered.view() : &what().view();
    work.base = base_;
    work.into_own_memory = into_own_memory_;
}

bool device_packer::has_ended(staging_buffer &buffer) noexcept {
    return (buffer.order.is_given() ? buffer.order.query() : buffer.done->query()) !=
           UCS_INPROGRESS;
}

ucs_status_t device_packer::wait(staging_buffer &buffer) noexcept {
    if (!buffer.order.is_given()) {
        return wait_for_launch(buffer);
    }
    const ucs_status_t ended = buffer.order.await();
    if (ended != UCS_ERR_CANCELED) {
        return ended;
    }
    buffer.order.forget();
    bool enqueued, lost;
    const ucs_status_t status = launch(buffer, &buffer.ordered, 1, &enqueued, &lost);
    const ucs_status_t left = enqueued ? wait_for_launch(buffer) : UCS_OK;
    return status != UCS_OK ? status : left;
}

ucs_status_t device_packer::wait_for_launch(staging_buffer &buffer) noexcept {
    if (buffer.ends.await()) {
        return UCS_OK;
    }
    ucs_status_t status = buffer.done->query();
    if (status == UCS_INPROGRESS) {
        status = buffer.done->synchronize();
    }
    if (status != UCS_OK) {
        stream().give_up();
    }
    return status;
}

ucs_status_t device_packer::run(staging_buffer &buffer, const staged_range &range,
                                bool *lost_p) noexcept {
    bool enqueued;
    ucs_status_t status = enqueue(buffer, &range, 1, &enqueued, lost_p);
    if (enqueued) {
        ucs_status_t ended = wait(buffer);
        return status != UCS_OK ? status : ended;
    }
    return status;
}

ucs_status_t device_packer::bounce(uint64_t offset, char *packed, size_t length) noexcept {
    bounce_buffer &shared = staging_->bounce();
    std::lock_guard<std::mutex> guard(shared.mutex);
    if (!staging_->ready_bounce()) {
        return UCS_ERR_NO_MEMORY;
    }
    staging_buffer &buffer = *shared.buffer;
    char *pinned = buffer.pinned->address();
    bool packing = dir_ == gpu::direction::pack;
    if (serial_ == 0) {
        serial_ = next_serial.fetch_add(1, std::memory_order_relaxed);
    }
    while (length != 0) {
        bool mine =
            packing && shared.owner == serial_ && offset >= shared.begin && offset < shared.end;
        if (!mine) {
            size_t piece =
                std::min<uint64_t>(buffer.size(), packing ? packed_size() - offset : length);
            if (!packing) {
                std::memcpy(pinned, packed, piece);
            }
            shared.owner = 0;
            bool lost;
            ucs_status_t status = run(buffer, {0, offset, piece}, &lost);
            if (lost) {
                staging_->abandon(shared.buffer);
                shared.buffer = nullptr;
            }
            if (status != UCS_OK) {
                return status;
            }
            shared.owner = packing ? serial_ : 0;
            shared.begin = offset;
            shared.end = offset + piece;
        }
        size_t piece = std::min<uint64_t>(length, shared.end - offset);
        if (packing) {
            std::memcpy(packed, pinned + (offset - shared.begin), piece);
        }
        offset += piece;
        packed += piece;
        length -= piece;
    }
    return UCS_OK;
}

ucs_status_t device_packer::enqueue_blocks(gpu::stream &stream, const layout &ordered,
                                           uint64_t offset, char *packed,
                                           uint64_t length) noexcept {
    ucs_status_t status = UCS_OK;
    layout_cursor cursor(ordered, offset);
    while (length != 0 && status == UCS_OK) {
        block span = cursor.next(length);
        char *laid_out = displaced(base_, span.displacement);
        status = dir_ == gpu::direction::pack ? stream.copy(packed, laid_out, span.length)
                                              : stream.copy(laid_out, packed, span.length);
        packed += span.length;
        length -= span.length;
    }
    return status;
}

ucs_status_t device_packer::copy_blocks(uint64_t offset, char *packed, size_t length) noexcept {
    const ucs_status_t status = copy_blocks_once(offset, packed, length);
    // Another message's kernel may have failed on the shared stream before these copies, which then
    // never ran. Only these copies tell of it, where the message needed no kernel of its own.
    return status == UCS_OK ? UCS_OK : copy_blocks_once(offset, packed, length);
}

ucs_status_t device_packer::copy_blocks_once(uint64_t offset, char *packed,
                                             size_t length) noexcept {
    std::unique_ptr<gpu::completion> done = staging_->acquire_completion();
    if (done == nullptr) {
        return UCS_ERR_NO_RESOURCE;
    }
    shared_stream &shared = stream();
    ucs_status_t status = UCS_OK, ended;
    {
        std::lock_guard<std::mutex> guard(shared.mutex);
        gpu::stream *on = ready(shared);
        if (on == nullptr) {
            return UCS_ERR_NO_RESOURCE;
        }
        status = enqueue_blocks(*on, *layout_, offset, packed, length);
        ended = on->record(*done->mark);
    }
    if (ended == UCS_OK) {
        ended = done->mark->synchronize();
        staging_->release_completion(std::move(done));
    }
    if (status != UCS_OK || ended != UCS_OK) {
        shared.give_up();  // waits for its work
    }
    return status != UCS_OK ? status : ended;
}

}  // namespace cuda_nc::dt
