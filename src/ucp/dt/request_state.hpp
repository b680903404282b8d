// One message's pack or unpack: what the generic datatype keeps between UCP's start and finish.
//
// Serves UCP's fragments, whatever their size and order, from host memory directly and from GPU
// memory through staging that is packed (or unpacked) megabytes at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ucs/base/status.hpp"
#include "ucs/gpu/device.hpp"
#include "ucs/layout/layout.hpp"

namespace cuda_nc::dt {

class request_state {
  public:
    // Begins packing (or unpacking) `what` at `base`. Taken from a free list: no allocation in the
    // steady state. Does not touch the buffer and waits for nothing. Null: no memory, or memory of
    // a kind that the engine cannot serve (`info.kind` unknown); the caller takes another path.
    static request_state *start_pack(layout_ref what, const void *base,
                                     const gpu::memory_info &info) noexcept;
    static request_state *start_unpack(layout_ref what, void *base,
                                       const gpu::memory_info &info) noexcept;

    size_t packed_size() const noexcept;

    // Writes packed bytes [offset, offset + n) to host memory `destination` and returns
    // n = min(max_length, packed_size - offset). max_length may be SIZE_MAX. Any offset, any order;
    // ascending is fast. 0 only at the end or after an unrecoverable error (logged).
    size_t pack(size_t offset, void *destination, size_t max_length) noexcept;

    // Takes packed bytes [offset, offset + length) from host memory `source`. Any order, no range
    // twice. The call that takes the last missing byte returns when all bytes are in the user's
    // memory, or with the error that prevented it.
    ucs_status_t unpack(size_t offset, const void *source, size_t length) noexcept;

    // Ends the message, complete or not. On return no kernel and no copy touches the user's
    // buffer; bytes received so far are there. Returns the state to its free list.
    void finish() noexcept;

  protected:
    request_state() = default;
    ~request_state() = default;
};

// Copies the bytes of `what` from one buffer to another laid out alike, each of any served kind;
// returns when they are there.
ucs_status_t copy(const layout_ref &what, const void *source, void *destination) noexcept;

// Frees all staging, streams and free lists not in use (process exit, tests).
void release_unused() noexcept;

}  // namespace cuda_nc::dt
