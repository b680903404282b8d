// The packing or unpacking of one message: what the generic datatype keeps between UCP's start and
// finish.
//
// Packs and unpacks UCP's fragments, of any size and in any order. Host memory is read and written
// directly, GPU memory through staging, in chunks of up to megabytes.
//
// Different threads may use different requests at the same time, and one request after each other.
#pragma once

#include <atomic>
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
    // Begins packing (or unpacking) `what` at `base`. Acquires the state from a free list: no
    // allocation in the steady state. Does not wait, and does not touch the buffer. Null: no
    // memory, or memory that cannot be served (`info.kind` unknown, a GPU that is not there); then
    // the caller must move the bytes in another way.
    //
    // For host and pinned memory `what` may own nothing, if its layout lives until finish(): that
    // saves two atomic operations.
    static request_state *start_pack(layout_ref what, const void *base,
                                     const gpu::memory_info &info) noexcept;
    static request_state *start_unpack(layout_ref what, void *base,
                                       const gpu::memory_info &info) noexcept;

    // To the word that UCX keeps as the message's state, and back: a message handle, or the
    // state's address and, in the bits that addresses leave free, a number that its next messages
    // do not have. Its two lowest bits are 0.
    void *to_ucx() noexcept;
    static request_state *from_ucx(void *kept) noexcept {
        const auto word = reinterpret_cast<uintptr_t>(kept);
        return CUDA_NC_LIKELY((word & message_handle_mark) == 0) ? of_address(word)
                                                                 : state_of_message_handle(word);
    }
    // The same for finish(); null: the message has ended. UCX up to 1.22 finishes the state of a
    // synchronous send twice where the peer dies before it answers.
    static request_state *to_finish(void *kept) noexcept {
        const auto word = reinterpret_cast<uintptr_t>(kept);
        if (CUDA_NC_UNLIKELY((word & message_handle_mark) != 0)) {
            return find_state_of_message_handle(word);
        }
        request_state *found = of_address(word);
        return CUDA_NC_LIKELY(found->address_word() == word) ? found : nullptr;
    }

    size_t packed_size() const noexcept;

    // Writes packed bytes [offset, offset + n) to host memory `destination` and returns
    // n = min(max_length, packed_size - offset). max_length may be SIZE_MAX. Any offset, any order;
    // ascending is fast. 0 only at the end.
    //
    // May wait for the GPU. Where kernels fail, copies move the bytes. Where these fail too, the
    // process ends with a fatal message that names the error (as a job does under
    // MPI_ERRORS_ARE_FATAL): UCP lets no sender fail here. If we return 0 it asks for the same
    // fragment for ever, if we return anything else it delivers wrong bytes.
    size_t pack(size_t offset, void *destination, size_t max_length) noexcept;

    // Unpacks packed bytes [offset, offset + length) from host memory `source`. Any order, no range
    // twice. The call with the last missing byte returns when all bytes are in the user's memory.
    // An error is returned as soon as it is known, and by every later call.
    ucs_status_t unpack(size_t offset, const void *source, size_t length) noexcept;

    // Unpacking: returns when all bytes of earlier calls are in the user's memory, or the error
    // that prevents it.
    ucs_status_t flush() noexcept;

    // Ends the message, complete or not, and releases the state to its free list. On return no
    // kernel and no copy touches the user's buffer, and all bytes received so far are there. Where
    // they cannot be written, and no call has returned the error, the process ends with a fatal
    // message.
    void finish() noexcept;

    // For the caller, from start to finish. Null at start.
    void *user = nullptr;

  protected:
    request_state() = default;
    ~request_state() = default;
    // A message begins, or ends.
    void note_use() noexcept {
        const auto next = static_cast<uint16_t>(uses_.load(std::memory_order_relaxed) + 1);
        uses_.store(next, std::memory_order_relaxed);
    }
    uintptr_t address_word() const noexcept {
        const auto address = reinterpret_cast<uintptr_t>(this);
        const uintptr_t uses = uses_.load(std::memory_order_relaxed);
        // An allocator that marks addresses (memory tagging of Arm) leaves no bits free.
        return CUDA_NC_LIKELY(address >> address_bits == 0)
                   ? address | uses << address_bits | count_mark
                   : address;
    }

  private:
    static constexpr unsigned address_bits = 48;
    static constexpr uintptr_t count_mark = 8;  // the word has a count; in no address of a state

    static request_state *of_address(uintptr_t word) noexcept {
        constexpr uintptr_t address_mask = (uintptr_t{1} << address_bits) - 1 - count_mark;
        return reinterpret_cast<request_state *>(
            CUDA_NC_LIKELY((word & count_mark) != 0) ? word & address_mask : word);
    }

    // Of each state that is made another one: memory is used again.
    static uint16_t first_use() noexcept {
        static std::atomic<uint16_t> last{0};
        constexpr uint16_t apart = 2 * 5003;  // even: the state is not in use
        return last.fetch_add(apart, std::memory_order_relaxed);
    }

    // Beginnings and ends of messages, modulo 2^16; odd while the state is in use. Read where the
    // state is another message's by now.
    std::atomic<uint16_t> uses_{first_use()};
};

// Copies the bytes of `what` from one buffer to another laid out alike, each of any served kind;
// returns when they are there. The buffers may overlap: the bytes are as if all were read first.
// UCS_ERR_UNSUPPORTED: memory of an unknown kind.
ucs_status_t copy(const layout_ref &what, const void *source, void *destination) noexcept;

// Moves packed byte i of one layout to packed byte i of another, within the memory of one GPU;
// returns when they are there. The buffers have no byte in common, unless the layouts are equal.
// UCS_ERR_UNSUPPORTED, and nothing was touched: layouts of different lengths, or other memory.
// After another error some bytes are there.
ucs_status_t move(const layout_ref &from, const void *source, const layout_ref &to,
                  void *target) noexcept;

// Frees all staging, streams and free lists that are not in use (at process exit, in tests). Frees
// no staging and no stream in a forked child.
void release_unused() noexcept;

}  // namespace cuda_nc::dt
