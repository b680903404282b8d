// The contract between the datatype (ucp/dt) and the transport for direct messages: bytes that go
// from one GPU's memory to another's, past UCP's fragments.
//
// UCP calls the datatype's pack() while it sends rendezvous data, and unpack() while it receives
// some; it counts the bytes that they claim. In such a call the transport tells the datatype what
// it can do for the message at hand (thread_context.hpp).
//
// One message is used by one thread at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "ucs/base/status.hpp"
#include "ucs/gpu/device.hpp"
#include "uct/cuda_nc/memory/process_id.hpp"

namespace cuda_nc {
class layout;
}

namespace cuda_nc::uct {

// The transport's part of a message. It deletes itself.
class direct_message {
  public:
    // The datatype's part ends, or the bytes go another way. On return no work that this message
    // enqueued touches the user's memory: it may wait for the GPU. user_buffer::message is null.
    virtual void leave() noexcept = 0;

  protected:
    ~direct_message() = default;
};

class user_buffer;

// A receive whose bytes UCP brings in fragments, in a list of the transport's
// (protocol/fragment_receives.hpp).
struct awaited_fragments {
    awaited_fragments() noexcept = default;
    ~awaited_fragments() { end(); }
    awaited_fragments(const awaited_fragments &) = delete;
    awaited_fragments &operator=(const awaited_fragments &) = delete;

    // The receive ends, or its bytes come another way.
    void end() noexcept {
        if (before != nullptr) {
            before->after = after;
            after->before = before;
            before = after = nullptr;
        }
    }

    awaited_fragments *before = nullptr, *after = nullptr;  // null: in no list
    user_buffer *buffer = nullptr;
    process_id sender = {};
    uint64_t request = 0;   // as UCP calls it
    uint64_t total = 0;     // bytes of the message
    uint64_t received = 0;  // of them, at the last look after the sender was gone
    unsigned looks = 0;     // before that, or without more bytes since
};

// The datatype's part of a message: the user's memory on a GPU, with its layout.
class user_buffer {
  public:
    virtual int device() const noexcept = 0;  // ordinal
    virtual uint64_t packed_bytes() const noexcept = 0;

    virtual bool sends() const noexcept { return false; }

    // What UCP's request keeps as the datatype's state, and buffer_finder knows the buffer by; 0:
    // it keeps nothing such.
    virtual uint64_t ucx_state() const noexcept { return 0; }

    // What holds the bytes, or the first of them; id 0: not known.
    virtual gpu::allocation_info allocation() const noexcept { return {}; }

    // How the bytes are laid out, and where displacement 0 is; null: unknown.
    virtual const layout *laid_out(char **base_p) const noexcept {
        *base_p = nullptr;
        return nullptr;
    }

    // Enqueues packing (sender) or unpacking (receiver) of packed bytes [offset, offset + length),
    // with `packed` in memory that the device reaches, and records `done` after it. After an error
    // nothing of it runs any more.
    virtual ucs_status_t enqueue(uint64_t offset, uint64_t length, char *packed,
                                 gpu::event &done) noexcept = 0;

    // The same by copies alone. `in_memory_order`: as of prepare().
    virtual ucs_status_t enqueue_copies(uint64_t /*offset*/, uint64_t /*length*/, char * /*packed*/,
                                        bool /*in_memory_order*/, gpu::event &) noexcept {
        return UCS_ERR_UNSUPPORTED;
    }

    // Before one end of a pipe, or a pull, is launched on a stream: fills in direction, layout and
    // base, and lets the stream wait for what the layout needs. `in_memory_order`: the other side
    // has the same layout, and both take the bytes as layout::in_memory_order() has them.
    virtual ucs_status_t prepare(gpu::pipe_work &, gpu::stream &,
                                 bool /*in_memory_order*/) noexcept {
        return UCS_ERR_UNSUPPORTED;
    }

    // The same for an order, which no stream orders. UCS_INPROGRESS: the layout needs something
    // that is not on the GPU yet.
    virtual ucs_status_t describe(gpu::pipe_work &, bool /*in_memory_order*/) noexcept {
        return UCS_ERR_UNSUPPORTED;
    }

    // Of a sender: the receiver has read all bytes by itself, and pack() is called for none.
    virtual void all_read() noexcept {}

    // Of a receiver: that have come in fragments, or with offers.
    virtual uint64_t received_bytes() const noexcept { return 0; }

    direct_message *message = nullptr;
    awaited_fragments fragments;

  protected:
    ~user_buffer() = default;
};

// The buffer whose ucx_state() is `word`, which may be anything; null: there is none. Set by the
// datatype.
extern std::atomic<user_buffer *(*)(uint64_t word) noexcept> buffer_finder;

}  // namespace cuda_nc::uct
