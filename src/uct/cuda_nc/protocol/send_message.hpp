// A direct message that leaves one of our GPUs: offers itself to the receiver's transport, and then
// moves by the route that the receiver answers with. Used with UCX's worker locked.
//
//             offered()                handle_answer()           route complete
//   made  ------------------> offered -----------------> moving ----------------> complete
//                              | |                          |                        ^
//                              | | declined, too late       | route failed, stop     |
//                              | +-----------> declined <---+                        |
//                              +-------- ATS: the receiver has read all bytes -------+
//
// A message that is complete or declined is decided: UCP is asked to send it again, and then claims
// all bytes, or packs them in fragments. After ATS UCP ends the send by itself.
#pragma once

#include <memory>

#include "uct/cuda_nc/ep.hpp"
#include "uct/cuda_nc/protocol/outgoing_offer.hpp"
#include "uct/cuda_nc/protocol/route.hpp"
#include "uct/cuda_nc/user_buffer.hpp"

namespace cuda_nc::uct {

struct endpoint;

class send_message final : public direct_message, public endpoint_user {
  public:
    // Packed bytes that go with an offer to a receiver that cannot tell otherwise which of its
    // messages it is for; a multiple of every word that kernels use.
    static constexpr uint64_t first_bytes = 1024;

    enum class state : uint8_t { made, offered, moving, complete, declined };

    send_message(message_services &services, endpoint &ep, user_buffer &buffer,
                 uint64_t id) noexcept;
    ~send_message();

    void leave() noexcept override;

    outgoing_offer &offer() noexcept { return offer_; }
    // Sends the offer with UCP's RTS: see outgoing_offer::announce().
    ucs_status_t announce(uint64_t request, const void *rts, size_t length) noexcept;
    // The offer was sent with UCP's data, and `first` bytes with it.
    void offered(uint64_t first) noexcept;

    // The receiver accepts. False: too late.
    bool handle_answer(const wire::control &answer) noexcept;
    void handle_decline(const wire::control &answer) noexcept;
    // ATS, which UCP is about to see: where the receiver has taken the early offer and has all
    // bytes, the send ends well. (UCP's own ATS says nothing of our message.)
    void handle_ats(const wire::end_of_pull &end) noexcept;
    // slot_empty, wake or pulled.
    void handle(const wire::control &message) noexcept;
    // The receiver wants no more, and awaits a cancel. After the end: passed over.
    void handle_stop(const wire::control &said) noexcept;
    // Ends the GPUs' work and lets the bytes go in fragments.
    void give_up() noexcept;
    // Ends the message too: the datatype's part need not end by itself, because UCX forgets it
    // where it aborts a send before the receiver's answer.
    void endpoint_closed(endpoint *other) noexcept override;

    // Whether the receiver is to have the FIN now, though it still pulls.
    bool wants_fin() const noexcept {
        return state_ == state::moving && route_->sends_fin_ahead() && !fin_is_sent_;
    }
    void fin_sent() noexcept { fin_is_sent_ = true; }
    bool fin_is_sent() const noexcept { return fin_is_sent_; }
    // UCP has been told that all bytes are packed: the send ends well.
    void all_claimed() noexcept;
    unsigned progress() noexcept;  // how much has happened

    state now() const noexcept { return state_; }
    bool is_decided() const noexcept {
        return state_ == state::complete || state_ == state::declined;
    }
    uint64_t id() const noexcept { return id_; }
    uint64_t receiver() const noexcept { return receiver_; }
    uint64_t peer() const noexcept { return peer_; }
    uint64_t total() const noexcept { return total_; }
    uint64_t first() const noexcept { return first_; }
    const endpoint *ep() const noexcept { return ep_; }
    bool is_polled() const noexcept { return state_ == state::moving && route_->is_polled(); }

  private:
    std::unique_ptr<send_route> open_route(const wire::control &answer) noexcept;
    void cancel() noexcept;
    void end() noexcept;

    message_services &services_;
    endpoint *ep_;
    user_buffer *const buffer_;
    const uint64_t id_;
    const uint64_t peer_;   // identity of the receiver's interface
    const uint64_t total_;  // packed bytes
    const int device_;
    state state_ = state::made;
    bool fin_is_sent_ = false;
    bool is_claimed_ = false;    // by UCP: nothing is to be cancelled any more
    bool was_answered_ = false;  // or stopped by the receiver
    uint64_t receiver_ = 0;      // the receiver's message; 0: not known, or cancelled
    uint64_t first_ = 0;         // packed bytes that went with the offer
    outgoing_offer offer_;
    std::unique_ptr<send_route> route_;
};

}  // namespace cuda_nc::uct
