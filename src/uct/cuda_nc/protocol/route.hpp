// Routes: how the bytes of a direct message move from one GPU's memory to another's. One pair of
// classes each: what the sender does, and what the receiver does.
//
//   pull         a kernel of the receiver's GPU reads the sender's memory    route_pull.hpp
//   copy         a copy engine of the receiver's GPU does                    route_copy.hpp
//   pipe         a kernel on each GPU, clocked by each other                 route_pipe.hpp
//   slots        the sender's kernels write into lent memory of the
//                receiver's GPU, or into shared pinned host memory, and the
//                CPUs tell each other of each slot                           route_slots.hpp
//   straight     one side is contiguous memory: a kernel of the other
//                side's GPU packs into it, or unpacks from it           route_straight.hpp
//   network      the carrier puts slots of the sender's GPU memory into
//                lent GPU memory on another host                             route_network.hpp
//
// A message owns its route from the answer to its end. Routes are used with UCX's worker locked;
// only stop() waits for a GPU.
#pragma once

#include <atomic>
#include <cstdint>

#include "ucs/base/status.hpp"
#include "uct/cuda_nc/memory/process_id.hpp"
#include "uct/cuda_nc/protocol/message_services.hpp"
#include "uct/cuda_nc/protocol/wire.hpp"
#include "uct/cuda_nc/user_buffer.hpp"

namespace cuda_nc::uct {

// What a route knows of its send. All of it lives as long as the route.
struct send_context {
    message_services &services;
    endpoint &ep;
    user_buffer &buffer;
    int device;         // ordinal of the GPU that holds the user's memory
    uint64_t id;        // our message
    uint64_t peer;      // identity of the receiver's interface
    uint64_t receiver;  // its message
    uint64_t total;     // packed bytes
    uint64_t first;     // of them have gone with the offer
};

class send_route {
  public:
    enum class state : uint8_t {
        moving,
        complete,  // all bytes are in the receiver's hands, and it has been told of each
        failed     // the bytes have to go in fragments
    };

    explicit send_route(const send_context &context) noexcept : message_(context) {}
    // After stop() and, where the message is not complete, cancel().
    virtual ~send_route() = default;
    send_route(const send_route &) = delete;
    send_route &operator=(const send_route &) = delete;

    // Adds to *happened_p how much has happened.
    virtual state progress(unsigned *happened_p) noexcept = 0;
    // The peer's message slot_empty, wake or pulled. False: nothing has changed.
    virtual bool handle(const wire::control &) noexcept { return false; }

    // On return nothing that was enqueued touches the user's memory. May wait for the GPU.
    virtual void stop() noexcept = 0;
    // After stop(): tells the receiver that no GPU of ours writes any more.
    virtual void cancel() noexcept {
        if (message_.receiver != 0) {
            message_.services.control.send(&message_.ep, wire::control_kind::cancel,
                                           message_.receiver, message_.id);
        }
    }

    // The FIN goes ahead of the bytes, as soon as UCP asks for them: the receiver knows by itself
    // when it has them.
    virtual bool sends_fin_ahead() const noexcept { return false; }
    // Nobody but progress() will see what the GPU or the network does next. Where that begins the
    // route tells the agenda.
    virtual bool is_polled() const noexcept { return false; }
    // Counts messages that were sent this way.
    virtual std::atomic<uint64_t> &counter() const noexcept = 0;

  protected:
    const send_context message_;
};

// What a route knows of its receive; owned by the message.
struct receive_context {
    message_services &services;
    endpoint *ep;                 // null: it has been closed
    user_buffer *buffer;          // null: the datatype's part has ended
    const int device;             // ordinal of the GPU that holds the user's memory
    const uint64_t id;            // our message
    const uint64_t peer;          // identity of the sender's interface
    const uint64_t sender;        // its message; 0: none, for its memory is contiguous
    const uint64_t total, first;  // packed bytes, and those that came with the offer
    process_id sending_process = {};
    bool is_silent = false;  // the sender hears of nothing but the end, and that by UCP's ATS

    uint64_t rest() const noexcept { return total - first; }
    // A control message to the sender about this message, unless it is silent.
    void send(wire::control message) const noexcept {
        message.to = sender;
        message.from = id;
        services.control.send(is_silent ? nullptr : ep, message);
    }
    void send(wire::control_kind kind) const noexcept {
        services.control.send(is_silent ? nullptr : ep, kind, sender, id);
    }
};

class receive_route {
  public:
    explicit receive_route(receive_context &context) noexcept : message_(context) {}
    // Does what stop() and release() do, where they were not called.
    virtual ~receive_route() = default;
    receive_route(const receive_route &) = delete;
    receive_route &operator=(const receive_route &) = delete;

    // Nothing is wanted of the sender but its memory: it need not know of the route before its end.
    virtual bool reads_alone() const noexcept { return false; }
    // Answers the offer, with `flags` as in the message, and begins. Called once, before all below.
    virtual void answer(uint32_t flags) noexcept = 0;
    virtual unsigned progress() noexcept = 0;  // how much has happened
    // The peer's message slot_full or wake. False: nothing has changed.
    virtual bool handle(const wire::control &) noexcept { return false; }
    // The sender's FIN has come.
    virtual void handle_fin() noexcept {}

    // All that will come has come, once the FIN has: status() says what became of it.
    virtual bool is_through() const noexcept = 0;
    virtual ucs_status_t status() const noexcept { return UCS_OK; }
    // The sender has to be told to stop and to send the bytes in fragments.
    virtual bool has_failed() const noexcept { return false; }
    // The sender's process is gone, and what it has said has long been heard: what becomes of the
    // message without its FIN. Asked again and again.
    enum class rest_of { complete, moving, lost };
    virtual rest_of without_sender() noexcept {
        return has_failed() || (is_through() && status() != UCS_OK) ? rest_of::lost
               : is_through()                                       ? rest_of::complete
                                                                    : rest_of::moving;
    }
    // The same, because its endpoint closes, and it would wait for ever.
    virtual bool must_stop_on_close() const noexcept { return false; }

    // On return nothing that was enqueued touches the user's memory. May wait for the GPU.
    virtual void stop() noexcept = 0;
    // Returns what was borrowed. What a sender that is not through may still write to goes into
    // quarantine.
    virtual void release(bool sender_is_through) noexcept = 0;

    // The first bytes, which came with the offer, are moved once more.
    virtual bool moves_whole_message() const noexcept { return false; }
    // A sender that cancels waits to hear that no kernel of ours writes to it any more.
    virtual bool owes_ended() const noexcept { return false; }
    // As of a send_route.
    virtual bool is_polled() const noexcept { return false; }
    virtual void count_received() const noexcept = 0;

  protected:
    receive_context &message_;
};

}  // namespace cuda_nc::uct
