// One message's pack or unpack: what the generic datatype keeps between UCP's start and finish.
//
// Serves UCP's fragments, whatever their size and order, from host memory directly and from GPU
// memory through staging that is packed (or unpacked) in chunks up to megabytes at a time.
//
// Different requests may be used by different threads at the same time; one request by one thread
// at a time, not always the same.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ucp/dt/message_handles.hpp"
#include "ucs/base/compiler.hpp"
#include "ucs/base/status.hpp"
#include "ucs/gpu/device.hpp"
#include "ucs/layout/layout.hpp"

namespace cuda_nc::dt {

class request_state {
  public:
    // Begins packing (or unpacking) `what` at `base`. Taken from a free list: no allocation in the
    // steady state. Waits for nothing. The CPU does not touch the buffer; a GPU may begin to read
    // it for packing. Null: no memory, or memory of a kind that the engine cannot serve
    // (`info.kind` unknown, a GPU that is not there); the caller takes another path.
    //
    // For host and pinned memory `what` may be a reference that owns nothing, to a layout that
    // lives until finish(): that saves counting.
    static request_state *start_pack(layout_ref what, const void *base,
                                     const gpu::memory_info &info) noexcept;
    static request_state *start_unpack(layout_ref what, void *base,
                                       const gpu::memory_info &info) noexcept;

    // What UCX is to keep as the message's state, and back. Its two lowest bits are 0.
    void *to_ucx() noexcept;
    static request_state *from_ucx(void *kept) noexcept {
        auto word = reinterpret_cast<uintptr_t>(kept);
        return CUDA_NC_LIKELY((word & message_handle_mark) == 0)
                   ? static_cast<request_state *>(kept)
                   : state_of_message_handle(word);
    }

    size_t packed_size() const noexcept;

    // Writes packed bytes [offset, offset + n) to host memory `destination` and returns
    // n = min(max_length, packed_size - offset). max_length may be SIZE_MAX. Any offset, any order;
    // ascending is fast. 0 only at the end.
    //
    // May wait for the GPU. Where kernels fail the bytes go by plain copies; where these fail too,
    // the process ends with a fatal message that names the error (as a job under
    // MPI_ERRORS_ARE_FATAL): UCP gives a packing sender no way to fail, sends the same fragment
    // for ever when told 0, and would deliver wrong bytes when told anything else.
    size_t pack(size_t offset, void *destination, size_t max_length) noexcept;

    // Takes packed bytes [offset, offset + length) from host memory `source`. Any order, no range
    // twice. The call that takes the last missing byte returns when all bytes are in the user's
    // memory. An error is returned as soon as it is known, and by every later call.
    ucs_status_t unpack(size_t offset, const void *source, size_t length) noexcept;

    // Unpacking: returns when all bytes taken so far are in the user's memory, or with the error
    // for which they are not.
    ucs_status_t flush() noexcept;

    // Ends the message, complete or not. On return no kernel and no copy touches the user's
    // buffer; bytes received so far are there: ends the process where they cannot be brought and no
    // call has returned the error. Returns the state to its free list.
    void finish() noexcept;

    // The caller's own, from start to finish. Null at start.
    void *user = nullptr;

  protected:
    request_state() = default;
    ~request_state() = default;
};

// Copies the bytes of `what` from one buffer to another laid out alike, each of any served kind;
// returns when they are there. The buffers do not overlap. UCS_ERR_UNSUPPORTED: memory of a kind
// that the engine cannot serve.
ucs_status_t copy(const layout_ref &what, const void *source, void *destination) noexcept;

// Frees all staging, streams and free lists not in use (process exit, tests). Does nothing in a
// forked child.
void release_unused() noexcept;

}  // namespace cuda_nc::dt
