// The offer of one send: what it says to the receiver, the port that it lends, and how long an
// answer is awaited. Used with UCX's worker locked.
#pragma once

#include <chrono>
#include <cstdint>

#include "ucs/base/tick_clock.hpp"
#include "uct/cuda_nc/pipe/port.hpp"
#include "uct/cuda_nc/protocol/message_services.hpp"
#include "uct/cuda_nc/protocol/wire.hpp"
#include "uct/cuda_nc/user_buffer.hpp"

namespace cuda_nc::uct {

class outgoing_offer {
  public:
    // Of message `id` in `buffer` over `ep`.
    outgoing_offer(message_services &services, endpoint &ep, const user_buffer &buffer,
                   uint64_t id) noexcept;
    ~outgoing_offer() { release_port(); }
    outgoing_offer(const outgoing_offer &) = delete;
    outgoing_offer &operator=(const outgoing_offer &) = delete;

    const wire::sender_offer &content() const noexcept { return content_; }
    // Where the user's memory is, for a receiver that may pull.
    wire::source_descriptor source() const noexcept;

    // Sends the offer with UCP's RTS, in which UCP calls the send `request`. It brings a port
    // unless the receiver is told where the bytes are, and is expected to pull them.
    // UCS_ERR_NO_RESOURCE: the carrier has no room; any error: nothing has happened.
    ucs_status_t announce(uint64_t request, const void *rts, size_t length) noexcept;
    // Acquires a port for it, where a pipe is possible and it has none; without one it is of slots
    // alone.
    void bring_port() noexcept;
    // The receiver pulls, or not: then offers of that layout need no port, or do.
    void learn(bool pulls) noexcept;
    // It was sent with UCP's data: an answer is awaited for a second.
    void sent_with_data() noexcept;
    // True once: the early offer is out, and has not been answered.
    bool consume_unanswered() noexcept;
    // Tells the receiver that the early offer is void, if it is out and has not been answered.
    void withdraw() noexcept;
    // No answer is awaited any more.
    void forget_early() noexcept { early_request_ = 0; }

    // Whether the time in which an answer is awaited is over.
    bool is_overdue() const noexcept {
        return deadline_ != clock::time_point::max() && clock::now() >= deadline_;
    }

    // Null: there is none, or it has been given to a route.
    pipe_port *port() const noexcept { return port_; }
    void port_is_taken_over() noexcept { port_ = nullptr; }
    void release_port() noexcept;

  private:
    using clock = tick_clock;

    bool will_be_pulled() const noexcept;
    uint64_t &pulled() const noexcept;  // the layout's place at the endpoint

    message_services &services_;
    endpoint &ep_;
    const user_buffer &buffer_;
    const uint64_t id_;
    wire::sender_offer content_ = {};
    pipe_port *port_ = nullptr;
    uint64_t early_request_ = 0;  // not 0: an early offer is out and not answered
    clock::time_point deadline_ = clock::time_point::max();
};

}  // namespace cuda_nc::uct
