#include "uct/cuda_nc/protocol/send_message.hpp"

#include "ucs/base/log.hpp"
#include "ucs/base/trace.hpp"
#include "uct/cuda_nc/counters.hpp"
#include "uct/cuda_nc/ep.hpp"

namespace cuda_nc::uct {

send_message::send_message(message_services &services, endpoint &ep, user_buffer &buffer,
                           uint64_t id) noexcept
    : services_(services),
      ep_(&ep),
      buffer_(&buffer),
      id_(id),
      peer_(ep.peer),
      total_(buffer.packed_bytes()),
      device_(buffer.device()),
      offer_(services, ep, buffer, id) {
    use(&ep);
    trace_begin("send", id_, total_);
}

send_message::~send_message() {
    route_.reset();
    trace_end("send", id_);
    buffer_->message = nullptr;
}

void send_message::end() noexcept {
    if (!was_answered_ && !is_claimed_) {
        services_.unanswered.add({id_, peer_});
    }
    services_.schedule.stop_waiting(id_);
    services_.looks.forget_time(id_);
    services_.pending.message_decided(id_);
    services_.messages.erase(*this);
}

// The route ends here, after it has told the receiver.
void send_message::cancel() noexcept {
    if (route_ != nullptr) {
        route_->cancel();
        route_.reset();
    } else if (receiver_ != 0) {
        services_.control.send(ep_, wire::control_kind::cancel, receiver_, id_);
    }
    receiver_ = 0;
}

void send_message::give_up() noexcept {
    if (is_claimed_) {
        return;
    }
    if (state_ != state::declined) {
        count(state_ == state::moving ? counters::all().abandoned : counters::all().declined);
    }
    offer_.forget_early();
    services_.looks.forget_time(id_);
    if (route_ != nullptr) {
        route_->stop();
    }
    offer_.release_port();
    cancel();
    state_ = state::declined;
    services_.pending.message_decided(id_);
}

// An answer that was lost with its endpoint has not come: the receiver awaits our cancel all the
// same. A route that has ended has said its own, or must not (unfinished_puts).
void send_message::handle_stop(const wire::control &said) noexcept {
    if (is_claimed_) {
        return;
    }
    if (!was_answered_) {
        was_answered_ = true;
        receiver_ = said.from;
    }
    give_up();
}

void send_message::leave() noexcept {
    if (route_ != nullptr) {
        route_->stop();
    }
    if (!is_claimed_) {
        cancel();
    }
    offer_.withdraw();
    end();
}

void send_message::endpoint_closed(endpoint *) noexcept {
    give_up();
    ep_ = nullptr;
    end();
}

void send_message::all_claimed() noexcept {
    is_claimed_ = true;
    trace_mark("end leaves", id_);
    if (route_ != nullptr) {  // none where a stranger sent ATS
        count(route_->counter());
    }
}

void send_message::handle(const wire::control &message) noexcept {
    if (state_ == state::moving && route_->handle(message)) {
        progress();
    }
}

unsigned send_message::progress() noexcept {
    if (state_ == state::offered && offer_.is_overdue()) {
        nc_debug("the receiver does not answer an offer: the message goes in fragments");
        give_up();
        return 1;
    }
    if (state_ != state::moving) {
        return 0;
    }
    unsigned happened = 0;
    switch (route_->progress(&happened)) {
        case send_route::state::moving:
            return happened;
        case send_route::state::complete:
            state_ = state::complete;
            services_.pending.message_decided(id_);
            return happened + 1;
        case send_route::state::failed:
            nc_debug(
                "a GPU could not pack, or the network could not move: the message goes in "
                "fragments");
            give_up();
            return happened + 1;
    }
    return happened;
}

}  // namespace cuda_nc::uct
