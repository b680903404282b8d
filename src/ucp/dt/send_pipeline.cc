#include "ucp/dt/send_pipeline.hpp"

#include <algorithm>
#include <cstring>

#include "ucs/base/settings.hpp"
#include "ucs/model/choices.hpp"

namespace cuda_nc::dt {
namespace {

// A stock transport sends a fragment of 8 KB in about a microsecond. A launch takes about five, and
// its end is seen five later. The first chunk is short, so that the first fragment leaves soon.
constexpr size_t first_chunk = size_t(128) << 10;
constexpr uint64_t single_chunk = uint64_t(256) << 10;
constexpr size_t least_chunk = size_t(4) << 10;
constexpr size_t most_chunk = size_t(16) << 20;

size_t chunk_limit(int ordinal) noexcept {
    return std::min(std::max(model::fragment_size(ordinal), least_chunk), most_chunk);
}

}  // namespace

ucs_status_t send_pipeline::begin(layout_ref &&what, const void *base,
                                  const gpu::memory_info &memory) noexcept {
    ucs_status_t status = open(gpu::direction::pack, std::move(what),
                               const_cast<char *>(static_cast<const char *>(base)), memory);
    next_ = 0;
    growing_ = 0;
    return status;
}

// Forgets what is packed ahead.
void send_pipeline::restart(uint64_t offset) noexcept {
    while (count_ != 0) {
        retire_front(false);
    }
    next_ = offset;
    growing_ = 0;
}

size_t send_pipeline::first_length() const noexcept {
    const uint64_t left = packed_size() - next_;
    return static_cast<size_t>(std::min<uint64_t>(chunk_limit(packer_.ordinal()),
                                                  left <= single_chunk ? left : first_chunk));
}

void send_pipeline::keep_or_release(staging_buffer *buffer) noexcept {
    if (spare_ == nullptr && next_ < packed_size() && !kernels_failed()) {
        spare_ = buffer;
    } else {
        packer_.staging().release(buffer);
    }
}

void send_pipeline::retire_front(bool keep_buffer) noexcept {
    chunk &old = front();
    // The kernel must have ended before the buffer and its event are used again, and before end()
    // returns: it reads the user's memory.
    ucs_status_t status = old.ready ? UCS_OK : packer_.wait(*old.buffer);
    if (status != UCS_OK) {
        no_kernels(status);
    }
    if (keep_buffer) {
        keep_or_release(old.buffer);
    } else {
        packer_.staging().release(old.buffer);
    }
    old.buffer = nullptr;
    ++first_;
    --count_;
}

// Has up to `limit` chunks packed or being packed, as staging allows.
void send_pipeline::launch_ahead(unsigned limit) noexcept {
    while (count_ < limit && next_ < packed_size() && packer_.has_kernels() && !kernels_failed()) {
        if (growing_ == 0) {
            growing_ = first_length();
        }
        size_t wanted = static_cast<size_t>(std::min<uint64_t>(growing_, packed_size() - next_));
        staging_buffer *buffer = spare_;
        if (buffer != nullptr && buffer->size() < wanted) {
            packer_.staging().release(buffer);
            buffer = nullptr;
        }
        spare_ = nullptr;
        if (buffer == nullptr) {
            // A smaller buffer is worth it only where no chunk is there.
            buffer = packer_.staging().acquire(wanted, count_ != 0 ? wanted : least_chunk);
        }
        if (buffer == nullptr) {
            return;
        }
        uint64_t length = std::min<uint64_t>(wanted, buffer->size());
        staged_range range = {0, next_, length};
        bool enqueued, lost;
        ucs_status_t status = packer_.enqueue(*buffer, &range, 1, &enqueued, &lost);
        if (status != UCS_OK) {
            no_kernels(status);
            if (lost) {
                packer_.staging().abandon(buffer);
                return;
            }
            if (enqueued) {
                packer_.wait(*buffer);
            }
            packer_.staging().release(buffer);
            return;
        }
        chunk &made = chunks_[(first_ + count_) % depth];
        made = {buffer, next_, next_ + length, false};
        ++count_;
        next_ += length;
        growing_ = std::min(growing_ * 2, chunk_limit(packer_.ordinal()));
    }
}

// Waits for the front chunk. False: its kernel failed.
bool send_pipeline::front_ready() noexcept {
    chunk &one = front();
    if (!one.ready) {
        ucs_status_t status = packer_.wait(*one.buffer);
        one.ready = true;  // ended, well or not
        if (status != UCS_OK) {
            no_kernels(status);
        }
    }
    return !kernels_failed();
}

ucs_status_t send_pipeline::read(uint64_t offset, char *packed, size_t length,
                                 unsigned ahead) noexcept {
    while (length != 0) {
        bool in_order =
            offset == next_ || (count_ != 0 && offset >= front().begin && offset < next_);
        if (!in_order && !kernels_failed()) {
            restart(offset);
        }
        // The front chunk stays until UCP asks for a later offset: it asks for the same bytes again
        // where its transport had no room.
        while (count_ != 0 && offset >= front().end) {
            retire_front(true);
        }
        launch_ahead(ahead);
        size_t piece = length;
        if (count_ != 0 && front_ready()) {
            chunk &source = front();
            piece = static_cast<size_t>(std::min<uint64_t>(length, source.end - offset));
            std::memcpy(packed, source.buffer->pinned->address() + (offset - source.begin), piece);
        } else {
            ucs_status_t status = move_slowly(offset, packed, piece);
            if (status != UCS_OK) {
                return status;
            }
            next_ = std::max(next_, offset + piece);
        }
        offset += piece;
        packed += piece;
        length -= piece;
    }
    return UCS_OK;
}

void send_pipeline::end() noexcept {
    while (count_ != 0) {
        retire_front(false);
    }
    if (spare_ != nullptr) {
        packer_.staging().release(spare_);
        spare_ = nullptr;
    }
    packer_.close();
}

}  // namespace cuda_nc::dt
