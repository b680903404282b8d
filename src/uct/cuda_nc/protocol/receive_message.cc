#include "uct/cuda_nc/protocol/receive_message.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "ucs/base/log.hpp"
#include "ucs/base/trace.hpp"
#include "uct/cuda_nc/counters.hpp"
#include "uct/cuda_nc/ep.hpp"
#include "uct/cuda_nc/iface.hpp"
#include "uct/cuda_nc/protocol/route_network.hpp"
#include "uct/cuda_nc/protocol/route_pipe.hpp"
#include "uct/cuda_nc/protocol/route_pull.hpp"
#include "uct/cuda_nc/protocol/route_slots.hpp"
#include "uct/cuda_nc/protocol/route_straight.hpp"
#include "uct/cuda_nc/thread_context.hpp"

namespace cuda_nc::uct {

receive_message::receive_message(message_services &services, endpoint &ep, user_buffer &buffer,
                                 uint64_t id, uint64_t sender, uint64_t request, uint64_t total,
                                 uint64_t first, const wire::rtr_head *rtr) noexcept
    : message_{services, &ep, &buffer, buffer.device(), id, ep.peer, sender, total, first},
      request_(request) {
    use(&ep);
    trace_begin("receive", sender, total);
    buffer.message = this;
    if (rtr != nullptr) {
        held_ = *rtr;
    }
}

receive_message::receive_message(message_services &services, endpoint &ep,
                                 std::unique_ptr<plain_memory> memory, uint64_t id, uint64_t sender,
                                 uint64_t request, uint64_t total) noexcept
    : receive_message(services, ep, *memory, id, sender, request, total, 0, nullptr) {
    plain_ = std::move(memory);
}

receive_message::~receive_message() {
    route_.reset();
    trace_end("receive", message_.sender);
    if (message_.buffer != nullptr) {
        message_.buffer->message = nullptr;
    }
}

// The cheapest first.
std::unique_ptr<receive_route> receive_message::prepare_route(
    const wire::early_offer &offer) noexcept {
    if (message_.ep->by_network) {
        return network_receiver::prepare(message_);
    }
    message_.sending_process = offer.offer.process;
    std::unique_ptr<receive_route> route;
    if (plain_ != nullptr) {
        if (plain_->make_movable()) {
            route = pull_receiver::prepare(message_, offer, pull_receiver::instead_of::straight);
        }
        if (route == nullptr) {
            route = straight_target::prepare(message_, *plain_, offer.offer);
        }
        if (route != nullptr || !plain_->is_movable()) {
            return route;
        }
    }
    const bool may_pull = message_.first == 0;
    if (may_pull) {
        route = pull_receiver::prepare(message_, offer, pull_receiver::instead_of::pipe);
    }
    if (message_.sender == 0) {
        return route != nullptr ? std::move(route) : straight_receiver::prepare(message_, offer);
    }
    if (route == nullptr) {
        route = pipe_receiver::prepare(message_, offer.offer);
    }
    if (route == nullptr && may_pull) {
        route = pull_receiver::prepare(message_, offer, pull_receiver::instead_of::slots);
    }
    if (route == nullptr && plain_ != nullptr && !plain_->reserve_stream()) {
        return nullptr;
    }
    return route != nullptr ? std::move(route) : slot_receiver::prepare(message_, offer.offer);
}

bool receive_message::accept(const wire::early_offer &offer, uint32_t flags,
                             bool *holds_rtr_p) noexcept {
    route_ = prepare_route(offer);
    if (route_ == nullptr) {
        return false;
    }
    message_.buffer->fragments.end();
    flags_ = flags;
    if (held_ && !route_->reads_alone()) {
        held_.reset();
    }
    if (held_) {
        message_.is_silent = has_fin_ = true;
        header_ = {request_, 0};
    }
    *holds_rtr_p = held_.has_value();
    route_->answer(flags);
    // It may have ended or failed before it was answered.
    if (!held_) {
        progress();
    } else if (route_->has_failed() || route_->is_through()) {
        message_.services.looks.look_soon(message_.id);  // not within UCP's call
    }
    return true;
}

void receive_message::end() noexcept {
    message_.services.schedule.stop_waiting(message_.id);
    message_.services.looks.forget_time(message_.id);
    message_.services.messages.erase(*this);
}

// The bytes that are not here come in fragments of UCP's, if its sender lives. A receive whose RTR
// waits for room is listed when that leaves.
void receive_message::await_fragments() noexcept {
    if (message_.buffer != nullptr && plain_ == nullptr && !message_.services.rtrs.has(request_)) {
        message_.services.fragments.add(*message_.buffer, message_.sending_process, request_,
                                        message_.total);
        message_.services.progress.start();
    }
}

void receive_message::stop_sender() noexcept {
    stopped_ = true;
    message_.send(wire::control_kind::stop);
}

void receive_message::handle(const wire::control &message) noexcept {
    if (message_.buffer != nullptr && !stopped_ && route_->handle(message)) {
        progress();
    }
}

void receive_message::leave() noexcept {
    route_->stop();
    await_fragments();  // unless the receive ends
    message_.buffer->message = nullptr;
    message_.buffer = nullptr;
    if (held_) {
        acknowledge(UCS_ERR_CANCELED);  // else the send would wait for ever
    }
    // One that has sent its FIN writes no more, and would answer no more.
    const bool sender_is_through = has_fin_ && !held_ && !route_->reads_alone();
    if (sender_is_through) {
        route_->release(true);
    }
    if (message_.ep == nullptr || held_ || rtr_has_left_ || sender_is_through) {
        end();
    } else if (!stopped_) {
        stop_sender();
    }
}

void receive_message::handle_cancel() noexcept {
    if (held_) {
        return;  // the sender knows of no message
    }
    route_->stop();
    route_->release(true);
    if (route_->owes_ended()) {
        message_.services.control.send_to_interface(message_.peer, wire::control_kind::ended,
                                                    message_.sender, 0);
    }
    await_fragments();
    end();
}

// The receive goes on as one whose sender is gone does: UCP ends it with the endpoint, or we do
// when its process is gone.
void receive_message::handle_withdraw() noexcept {
    if (!held_ || is_acknowledged_) {
        return;
    }
    route_->stop();
    await_fragments();
    end();
}

void receive_message::change_endpoint(endpoint *ep) noexcept {
    message_.ep = ep;
    use(ep);
}

void receive_message::endpoint_closed(endpoint *other) noexcept {
    if (any_endpoint_ && other != nullptr) {
        change_endpoint(other);
        return;
    }
    if (held_ && !is_acknowledged_) {
        release_rtr();  // now or never
    }
    if (route_->must_stop_on_close() && !held_ && !stopped_) {
        route_->stop();
        stop_sender();
    } else if (!held_ && !has_fin_ && !stopped_) {
        // A sender that is through takes no notice: its FIN may come yet. Another one would wait
        // for ever, where this side alone closes.
        message_.send(wire::control_kind::stop);
    }
    change_endpoint(nullptr);
    if (message_.buffer == nullptr || plain_ != nullptr) {
        end();
    } else {
        message_.services.looks.look_soon(message_.id);
    }
}

bool receive_message::lasts() noexcept {
    return std::exchange(was_seen_, true) && message_.buffer != nullptr && !sender_is_gone_;
}

void receive_message::note_sender_is_gone() noexcept {
    sender_is_gone_ = true;
    progress();
}

// A process may end long after its connections: it is looked for in pauses that double. After the
// last one the looks for all senders go on.
void receive_message::look_for_sender() noexcept {
    constexpr std::chrono::milliseconds first_pause{1}, last_pause{4096};
    const auto now = agenda::clock::now();
    if (now < next_look_) {
        if (route_->is_through()) {  // the route may have had the message's time since
            message_.services.looks.look_at(message_.id, next_look_);
        }
        return;
    }
    if (is_gone(message_.sending_process)) {
        sender_is_gone_ = true;
        return;
    }
    const bool is_last = pause_ == last_pause;
    pause_ = is_last ? pause_ : std::max(first_pause, 2 * pause_);
    next_look_ = now + pause_;
    if (!is_last) {
        message_.services.looks.look_at(message_.id, next_look_);
    }
}

// True: the receive has ended. Words of the sender may still be on their way here.
bool receive_message::ends_without_sender() noexcept {
    using rest_of = receive_route::rest_of;
    const auto now = agenda::clock::now();
    switch (stopped_ ? rest_of::lost : route_->without_sender()) {
        case rest_of::complete:
            nc_debug("a sender has left, and its FIN is lost: all bytes are here");
            end_without_sender(UCS_OK);
            return true;
        case rest_of::lost:
            if (!may_fail()) {
                return false;
            }
            if (last_looks_.are_due(now, message_.services.calls)) {
                last_looks_.note(now, message_.services.calls);
                ++looks_without_sender_;
            }
            if (patient_looks::are_enough(looks_without_sender_)) {
                nc_debug("a sender has left before all its bytes were here");
                end_without_sender(UCS_ERR_CONNECTION_RESET);
                return true;
            }
            break;
        case rest_of::moving:
            break;
    }
    message_.services.looks.look_at(message_.id, now + patient_looks::pause);
    return false;
}

void receive_message::end_without_sender(ucs_status_t status) noexcept {
    route_->stop();
    if (!has_fin_) {
        header_ = {request_, message_.first};
    }
    deliver(status);
}

// Before UCX 1.22 a failure of contiguous memory cannot be told (deliver_plain()): such a receive
// waits, as UCP's own would.
bool receive_message::may_fail() const noexcept {
    return plain_ == nullptr || message_.services.iface.ucx->which >= release::v1_22;
}

void receive_message::handle_fin(const wire::rndv_header &header, uint64_t length) noexcept {
    if (message_.buffer == nullptr) {
        route_->stop();
        route_->release(true);
        end();
        return;
    }
    if (stopped_ && route_->reads_alone()) {
        return;  // it had left before the sender heard that fragments are wanted
    }
    if (has_fin_ || rtr_has_left_ || length != message_.rest() || header.offset != message_.first ||
        header.request != request_) {
        nc_error("a sender ends a message otherwise than it began; its FIN is ignored");
        return;
    }
    route_->handle_fin();
    header_ = header;
    has_fin_ = true;
    trace_mark("end comes", message_.sender);
    progress();
}

void receive_message::prepare_request() noexcept {
    if (message_.ep == nullptr) {
        message_.services.endpoints_of_requests.prepare(request_);
    }
}

// UCP's handler of ATP counts the bytes as arrived, and ends the receive. Before UCX 1.22 it does
// not look at the status: the user would take old bytes for the message's.
void receive_message::deliver_plain(ucs_status_t status) noexcept {
    if (status != UCS_OK && message_.services.iface.ucx->which < release::v1_22) {
        NC_LOG(log_level::fatal,
               "receive failed: some of %llu bytes could not be written to contiguous GPU memory, "
               "and this UCX would call the message complete: %s",
               static_cast<unsigned long long>(message_.total), status_text(status));
        std::abort();
    }
    wire::acknowledgement said = {request_, static_cast<int8_t>(status), message_.total};
    if (status == UCS_OK) {
        route_->count_received();
    }
    route_->release(true);
    interface &iface = message_.services.iface;
    prepare_request();
    end();
    deliver_to_ucp(iface, wire::atp_id, &said, sizeof(said));
}

// UCP's handler of ATS ends the send. False: there is no room for it yet. It has to leave before
// the receive ends, because the user may close the endpoint then.
bool receive_message::acknowledge(ucs_status_t status) noexcept {
    if (!is_acknowledged_) {
        is_acknowledged_ = true;
        const wire::end_of_pull said = {
            {held_->send_request, static_cast<int8_t>(status), held_->size}, message_.sender};
        const size_t length = status != UCS_OK       ? wire::failure_length
                              : message_.sender == 0 ? sizeof(said.ats)
                                                     : sizeof(said);
        message_.services.control.send_of_ucp(message_.ep, wire::ats_id, &said, length,
                                              message_.id);
    }
    return !message_.services.control.has_unsent_of(message_.id);
}

// The sender's UCP brings the bytes in fragments: the message stays until the first one comes, or
// the sender is gone. A sender that has offered a message would offer it once more, had it not
// heard that this one is declined.
void receive_message::release_rtr() noexcept {
    control_channel &channel = message_.services.control;
    route_->stop();
    if (message_.sender != 0) {
        wire::control declined = {};
        declined.kind = wire::control_kind::decline;
        declined.flags = flags_;
        declined.to = message_.sender;
        declined.from = message_.id;
        channel.send(message_.ep, declined);
    }
    channel.send_of_ucp(message_.ep, wire::rtr_id, &*held_, sizeof(*held_), message_.id);
    route_->release(true);
    held_.reset();
    has_fin_ = false;
    stopped_ = rtr_has_left_ = true;
}

// UCP's callback may end any message: this one is gone before.
void receive_message::deliver(ucs_status_t status) noexcept {
    if (plain_ != nullptr) {
        deliver_plain(status);
        return;
    }
    unpack_call call;
    call.fin = true;
    call.whole = route_->moves_whole_message();
    call.buffer = message_.buffer;
    call.status = status;
    if (call.status == UCS_OK) {
        route_->count_received();
    }
    // The sender's GPU wrote its last byte before its FIN left, or before its process was gone.
    route_->release(true);
    message_.buffer->message = nullptr;
    message_.buffer = nullptr;
    wire::rndv_header header = header_;
    const uint64_t length = sizeof(header) + message_.rest();
    interface &iface = message_.services.iface;
    prepare_request();
    end();
    deliver_rndv_data(iface, &header, length, call);
}

unsigned receive_message::progress() noexcept {
    if (message_.buffer == nullptr) {
        return 0;
    }
    if (held_ && message_.services.rtr_calls != 0) {  // perhaps for this very message
        message_.services.looks.look_soon(message_.id);
        return 0;
    }
    const unsigned happened = route_->progress();
    if (has_fin_ && route_->is_through()) {
        if (message_.services.rtrs.holds_up(request_, message_.id)) {
            return happened;
        }
        if (held_ && !acknowledge(route_->status()) && !sender_is_gone_) {
            return happened;
        }
        deliver(route_->status());
        return happened + 1;
    }
    if (message_.ep == nullptr && !has_fin_ && !sender_is_gone_) {
        look_for_sender();
    }
    if (sender_is_gone_) {
        if (message_.services.rtrs.holds_up(request_, message_.id)) {
            return happened;
        }
        return ends_without_sender() ? happened + 1 : happened;
    }
    if (route_->has_failed() && !stopped_ && !is_acknowledged_) {
        nc_debug("a GPU could not unpack: the sender is asked to send fragments");
        count(counters::all().abandoned);
        if (held_) {
            release_rtr();
        } else {
            stop_sender();
        }
        return happened + 1;
    }
    return happened;
}

}  // namespace cuda_nc::uct
