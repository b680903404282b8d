#include "ucp/dt/receive_pipeline.hpp"

#include <algorithm>
#include <cstring>

#include "ucs/base/bits.hpp"
#include "ucs/model/choices.hpp"

namespace cuda_nc::dt {
namespace {

constexpr size_t least_chunk = size_t(4) << 10;
constexpr size_t single_chunk = size_t(256) << 10;
constexpr size_t most_chunk = size_t(16) << 20;

size_t floor_power_of_two(uint64_t n) noexcept {
    return size_t(1) << (log2_floor(n));
}

}  // namespace

ucs_status_t receive_pipeline::begin(layout_ref &&what, void *base,
                                     const gpu::memory_info &memory) noexcept {
    ucs_status_t status =
        open(gpu::direction::unpack, std::move(what), static_cast<char *>(base), memory);
    if (status != UCS_OK) {
        return status;
    }
    current_ = nullptr;
    chunk_size_ = 0;
    received_ = next_turn_ = 0;
    failed_ = UCS_OK;
    return UCS_OK;
}

bool receive_pipeline::slot::add(uint64_t offset, uint64_t bytes) noexcept {
    staging_buffer &held = *buffer;
    for (unsigned i = held.num_ranges; i-- > 0;) {
        staged_range &one = held.ranges[i];
        if (one.offset + one.length == offset) {
            one.length += bytes;
            filled += bytes;
            return true;
        }
        if (offset + bytes == one.offset) {
            one.position -= bytes;
            one.offset = offset;
            one.length += bytes;
            filled += bytes;
            return true;
        }
    }
    if (held.num_ranges == staging_buffer::max_ranges) {
        return false;
    }
    held.ranges[held.num_ranges++] = {static_cast<size_t>(offset - begin), offset, bytes};
    filled += bytes;
    return true;
}

// A short message is one chunk. A longer one ends when its last chunk is unpacked, so chunks are a
// quarter of it, up to the configured size.
void receive_pipeline::choose_chunk_size() noexcept {
    size_t limit =
        std::min(std::max(model::fragment_size(packer_.ordinal()), least_chunk), most_chunk);
    uint64_t total = packed_size();
    size_t wanted = limit;
    if (total <= std::min(limit, single_chunk)) {
        wanted = static_cast<size_t>(total);
    } else {
        wanted = std::min(limit, std::max(floor_power_of_two(total / 4), least_chunk));
    }
    slot &first = slots_[0];
    first.buffer = packer_.staging().acquire(wanted, least_chunk);
    chunk_size_ = least_chunk;
    if (first.buffer != nullptr) {
        size_t rounded_up = floor_power_of_two(std::max(2 * wanted - 1, least_chunk));
        chunk_size_ = std::min(first.buffer->size(), rounded_up);
    }
}

receive_pipeline::slot *receive_pipeline::find_slot(uint64_t begin) noexcept {
    if (current_ != nullptr && current_->state == slot_state::filling && current_->begin == begin) {
        return current_;
    }
    for (slot &one : slots_) {
        if (one.state == slot_state::filling && one.begin == begin) {
            return &one;
        }
    }
    return open_slot(begin);
}

// Null: staging is short, or every slot is being filled.
receive_pipeline::slot *receive_pipeline::open_slot(uint64_t begin) noexcept {
    if (chunk_size_ == 0) {
        choose_chunk_size();
    }
    slot *found = nullptr, *oldest = nullptr;
    for (slot &one : slots_) {
        if (one.state == slot_state::launched && device_packer::has_ended(*one.buffer)) {
            wait_for(one);
        }
        if (one.state == slot_state::idle &&
            (found == nullptr || (found->buffer == nullptr && one.buffer != nullptr))) {
            found = &one;
        }
        if (one.state == slot_state::launched && (oldest == nullptr || one.turn < oldest->turn)) {
            oldest = &one;
        }
    }
    if (found != nullptr && found->buffer == nullptr) {
        found->buffer = packer_.staging().acquire(chunk_size_, chunk_size_);
    }
    if ((found == nullptr || found->buffer == nullptr) && oldest != nullptr) {
        wait_for(*oldest);  // waits for this request's own kernel only
        found = oldest;
    }
    if (found == nullptr || found->buffer == nullptr) {
        return nullptr;
    }
    found->state = slot_state::filling;
    found->buffer->num_ranges = 0;
    found->filled = 0;
    found->begin = begin;
    found->length = std::min<uint64_t>(chunk_size_, packed_size() - begin);
    return found;
}

void receive_pipeline::fail(ucs_status_t status) noexcept {
    if (failed_ == UCS_OK) {
        failed_ = status;
    }
}

void receive_pipeline::launch(slot &gathered) noexcept {
    staging_buffer &held = *gathered.buffer;
    if (gathered.filled == gathered.length) {
        held.ranges[0] = {0, gathered.begin, gathered.length};
        held.num_ranges = 1;
    }
    if (kernels_failed()) {
        copy_gathered(gathered);
        gathered.state = slot_state::idle;
        return;
    }
    bool enqueued, lost;
    ucs_status_t status = packer_.enqueue(held, held.ranges, held.num_ranges, &enqueued, &lost);
    if (status == UCS_OK) {
        gathered.turn = next_turn_++;
        gathered.state = slot_state::launched;
        return;
    }
    no_kernels(status);
    if (enqueued) {  // maybe a part only
        packer_.wait(held);
    }
    copy_gathered(gathered);
    gathered.state = slot_state::idle;
    if (lost) {
        packer_.staging().abandon(&held);
        gathered.buffer = nullptr;
    }
}

// No work of the slot runs any more. Blocks that a kernel wrote already are written again.
void receive_pipeline::copy_gathered(slot &gathered) noexcept {
    const staging_buffer &held = *gathered.buffer;
    ucs_status_t status = UCS_OK;
    for (unsigned i = 0; i < held.num_ranges && status == UCS_OK; ++i) {
        const staged_range &one = held.ranges[i];
        status = copy_blocks(one.offset, held.pinned->address() + one.position, one.length);
    }
    if (status != UCS_OK) {
        fail(status);
    }
}

void receive_pipeline::wait_for(slot &launched) noexcept {
    ucs_status_t status = packer_.wait(*launched.buffer);
    if (status != UCS_OK) {
        no_kernels(status);
        copy_gathered(launched);
    }
    launched.state = slot_state::idle;
}

void receive_pipeline::launch_gathered() noexcept {
    for (slot &one : slots_) {
        if (one.state == slot_state::filling) {
            launch(one);
        }
    }
}

void receive_pipeline::drop_gathered() noexcept {
    if (!uses_slots()) {
        return;
    }
    for (slot &one : slots_) {
        if (one.state == slot_state::filling) {
            one.state = slot_state::idle;
        }
    }
    current_ = nullptr;
}

ucs_status_t receive_pipeline::arrived(uint64_t length, ucs_status_t status) noexcept {
    count_direct();
    received_ += length;
    if (status != UCS_OK) {
        fail(status);
    }
    if (received_ == packed_size()) {
        wait_for_all();
    }
    return failed_;
}

void receive_pipeline::wait_for_all() noexcept {
    if (!uses_slots()) {
        return;
    }
    launch_gathered();
    for (slot &one : slots_) {
        if (one.state == slot_state::launched) {
            wait_for(one);
        }
    }
}

ucs_status_t receive_pipeline::flush() noexcept {
    wait_for_all();
    return failed_;
}

ucs_status_t receive_pipeline::write(uint64_t offset, const char *packed, size_t length) noexcept {
    while (length != 0 && failed_ == UCS_OK) {
        slot *target = nullptr;
        uint64_t piece = length;
        if (packer_.has_kernels()) {
            if (chunk_size_ == 0) {
                choose_chunk_size();
            }
            uint64_t begin = offset & ~(uint64_t(chunk_size_) - 1);
            piece = std::min<uint64_t>(length, begin + chunk_size_ - offset);
            target = find_slot(begin);
        }
        if (target != nullptr && target->add(offset, piece)) {
            std::memcpy(target->buffer->pinned->address() + (offset - target->begin), packed,
                        piece);
            current_ = target;
            if (target->filled == target->length) {
                launch(*target);
            }
        } else {
            write_slowly(offset, packed, piece);
        }
        offset += piece;
        packed += piece;
        length -= piece;
        received_ += piece;
    }
    if (received_ == packed_size()) {
        wait_for_all();
    }
    return failed_;
}

void receive_pipeline::write_slowly(uint64_t offset, const char *packed, size_t length) noexcept {
    char *source = const_cast<char *>(packed);  // only read when unpacking
    ucs_status_t status = move_slowly(offset, source, length);
    if (status != UCS_OK) {
        fail(status);
    }
}

ucs_status_t receive_pipeline::end() noexcept {
    if (uses_slots()) {
        wait_for_all();
        for (slot &one : slots_) {
            if (one.buffer != nullptr) {
                packer_.staging().release(one.buffer);
                one.buffer = nullptr;
            }
        }
    }
    packer_.close();
    return failed_;
}

}  // namespace cuda_nc::dt
