// The contract between the datatype (ucp/dt) and the transport for bytes that go from one GPU's
// memory to another's, past UCP.
//
// UCP calls pack() while it sends rendezvous data, and unpack() while it takes some; it counts what
// they say. Meanwhile the transport tells them, by a thread's pack_call or unpack_call, what it can
// do for the message at hand:
//
//   first   the first bytes go as always, and carry the sender's offer to the receiver's transport:
//           by them it learns which of its messages UCP's data is for. Mostly it knows without
//           them, and the offer goes alone
//   busy    the receiver is asked or the GPUs are at work: what pack() writes is not sent, UCP asks
//           again later
//   rest    all other bytes are there: pack() says so and writes nothing; unpack() reads nothing
//   host    the bytes go as always (the receiver is not ours, has no room, or something failed)
//
// One message is used by one thread at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "ucs/base/status.hpp"
#include "ucs/gpu/device.hpp"

namespace cuda_nc {
class layout;
}

namespace cuda_nc::uct {

// The transport's part of a message; it ends itself.
class direct_message {
  public:
    // The datatype's part ends, or the bytes go another way. On return no work that this message
    // enqueued touches the user's memory: it may wait for the GPU. direct_end::message is null.
    virtual void leave() noexcept = 0;

  protected:
    ~direct_message() = default;
};

// The datatype's part: the user's memory on a GPU.
class direct_end {
  public:
    virtual int device() const noexcept = 0;  // ordinal
    virtual uint64_t packed_bytes() const noexcept = 0;

    virtual bool sends() const noexcept { return false; }

    // What UCP's request keeps as the datatype's state, where end_finder knows it; 0: nothing such.
    virtual uint64_t ucx_state() const noexcept { return 0; }

    // How the bytes are laid out, and where displacement 0 is; null where that is not to be known.
    virtual const layout *laid_out(char **base_p) const noexcept {
        *base_p = nullptr;
        return nullptr;
    }

    // Enqueues pack (sender) or unpack (receiver) of packed bytes [offset, offset + length), with
    // `packed` in memory that the device reaches, and `done` after it. After a failure nothing of
    // it runs any more.
    virtual ucs_status_t enqueue(uint64_t offset, uint64_t length, char *packed,
                                 gpu::event &done) noexcept = 0;

    // Before one side of a pipe is launched on a stream: fills in its direction, layout and base,
    // and lets the stream wait for what the layout needs. `in_memory_order`: the other side is laid
    // out alike, and both take the bytes as layout::in_memory_order() has them.
    virtual ucs_status_t prepare(gpu::pipe_work &, gpu::stream &,
                                 bool /*in_memory_order*/) noexcept {
        return UCS_ERR_UNSUPPORTED;
    }

    direct_message *message = nullptr;

  protected:
    ~direct_end() = default;
};

enum class pack_answer : uint8_t { host, first, busy, rest };

// There while the calling thread's pack() is called for rendezvous data that the transport sends.
class pack_call {
  public:
    // *length_p: what UCP asks for; first: pack() writes so many of them, and returns that.
    virtual pack_answer ask(direct_end &end, uint64_t offset, size_t *length_p) noexcept = 0;

    static pack_call *current() noexcept { return current_; }

  protected:
    ~pack_call() = default;
    static thread_local pack_call *current_;
};

// There while the calling thread's unpack() is called for bytes of another process of ours.
struct unpack_call {
    bool rest = false;             // all but the first bytes have arrived, in the memory of `end`
    bool whole = false;            // rest: the first bytes too, once more
    direct_end *end = nullptr;     // rest: whose they are
    uint64_t taker = 0;            // not rest: set to its ucx_state() by an end that takes offers
    ucs_status_t status = UCS_OK;  // rest: what became of them

    static unpack_call *current() noexcept { return current_; }
    static thread_local unpack_call *current_;
};

// The end whose ucx_state() is `word`, which may be anything; null: there is none. Set by the
// datatype.
extern std::atomic<direct_end *(*)(uint64_t word) noexcept> end_finder;

}  // namespace cuda_nc::uct
