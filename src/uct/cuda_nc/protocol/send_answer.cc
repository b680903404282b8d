// What a sender makes of the receiver's answer to its offer.
#include <memory>
#include <new>

#include "ucs/base/log.hpp"
#include "ucs/base/trace.hpp"
#include "uct/cuda_nc/counters.hpp"
#include "uct/cuda_nc/iface.hpp"
#include "uct/cuda_nc/protocol/route_network.hpp"
#include "uct/cuda_nc/protocol/route_pipe.hpp"
#include "uct/cuda_nc/protocol/route_pull.hpp"
#include "uct/cuda_nc/protocol/route_slots.hpp"
#include "uct/cuda_nc/protocol/route_straight.hpp"
#include "uct/cuda_nc/protocol/send_message.hpp"

namespace cuda_nc::uct {
namespace {

void learn_receivers(endpoint &ep, uint32_t flags) noexcept {
    ep.known_receivers = (flags & wire::known_receivers) != 0     ? receivers_known::yes
                         : (flags & wire::unknown_receivers) != 0 ? receivers_known::no
                                                                  : receivers_known::perhaps;
}

// What of the receiver's the answer leads to, within a machine. Null: to nothing.
retry_pause *way_of(endpoint &ep, const wire::control &answer) noexcept {
    switch (answer.kind) {
        case wire::control_kind::accept_straight:
            return &ep.no_straight;
        case wire::control_kind::accept_pipe:
            return &ep.no_lent_memory;
        case wire::control_kind::accept_slots:
            return (answer.flags & wire::host_slots) != 0 ? &ep.no_host_slots : &ep.no_lent_memory;
        default:
            return nullptr;
    }
}

// The receiver's memory could be reached, or not. Then this message goes in fragments; later ones
// to the same peer are offered otherwise, or not at all, for a while.
void learn_reach(endpoint &ep, const wire::control &answer, bool unreachable,
                 const carrier_memory *network) noexcept {
    retry_pause *const way = way_of(ep, answer);
    if (ep.by_network) {
        ep.may_go_direct = ep.may_go_direct && !(unreachable && network->refuses());
    } else if (way != nullptr) {
        unreachable ? way->begin() : way->forget();
    }
}

}  // namespace

ucs_status_t send_message::announce(uint64_t request, const void *rts, size_t length) noexcept {
    const ucs_status_t sent = offer_.announce(request, rts, length);
    if (sent == UCS_OK) {
        state_ = state::offered;
    }
    return sent;
}

void send_message::offered(uint64_t first) noexcept {
    state_ = state::offered;
    trace_mark("offer leaves", id_);
    first_ = first;
    offer_.sent_with_data();
}

void send_message::handle_decline(const wire::control &answer) noexcept {
    was_answered_ = true;
    if (ep_ != nullptr) {
        learn_receivers(*ep_, answer.flags);
        offer_.learn(false);
        if ((answer.flags & wire::never) != 0 && ep_->by_network) {
            ep_->may_go_direct = false;
        }
    }
    give_up();
}

void send_message::handle_ats(const wire::end_of_pull &end) noexcept {
    if (state_ != state::offered || ep_ == nullptr || end.message != id_ ||
        end.ats.status != UCS_OK || end.ats.size != total_ || !offer_.consume_unanswered()) {
        return;
    }
    trace_mark("end comes", id_);
    count(counters::all().early);
    count(counters::all().sent_by_pull);
    learn_receivers(*ep_, wire::known_receivers);  // it was found by UCP's request
    offer_.learn(true);
    offer_.release_port();
    buffer_->all_read();
    is_claimed_ = true;
    state_ = state::complete;
}

// Null: the answer makes no sense here, or the route cannot be used.
std::unique_ptr<send_route> send_message::open_route(const wire::control &answer) noexcept {
    using kind = wire::control_kind;
    if (ep_->by_network != (answer.kind == kind::accept_network)) {
        return nullptr;
    }
    const bool lends = answer.kind == kind::accept_slots || answer.kind == kind::accept_pipe ||
                       answer.kind == kind::accept_straight;
    if (lends && !agree_on_process(*ep_, answer.process, services_.process)) {
        nc_debug("an answer names a process that is not its author's");
        return nullptr;
    }
    const send_context context = {services_, *ep_,        *buffer_, device_, id_,
                                  peer_,     answer.from, total_,   first_};
    bool unreachable = false;
    std::unique_ptr<send_route> route;
    switch (answer.kind) {
        case kind::accept_pull:
            route.reset(new (std::nothrow) pull_sender(context));
            break;
        case kind::accept_pipe:
            route = pipe_sender::open(context, answer, offer_.port(), offer_.content().channels,
                                      &unreachable);
            if (route != nullptr) {
                offer_.port_is_taken_over();
            }
            break;
        case kind::accept_straight:
            route = straight_sender::open(context, answer, &unreachable);
            break;
        case kind::accept_slots:
            route = slot_sender::open(context, answer, &unreachable);
            break;
        case kind::accept_network:
            route = network_sender::open(context, answer, &unreachable);
            break;
        default:
            break;
    }
    if (unreachable || route != nullptr) {
        learn_reach(*ep_, answer, unreachable, services_.iface.gpu_memory);
    }
    return route;
}

bool send_message::handle_answer(const wire::control &answer) noexcept {
    if (state_ != state::offered || ep_ == nullptr) {
        return false;
    }
    trace_mark("answer comes", id_);
    was_answered_ = true;
    receiver_ = answer.from;
    if (offer_.consume_unanswered()) {
        count(counters::all().early);
    }
    learn_receivers(*ep_, answer.flags);
    if (answer.kind != wire::control_kind::accept_straight) {
        offer_.learn(answer.kind == wire::control_kind::accept_pull);
    }
    services_.looks.forget_time(id_);
    route_ = open_route(answer);
    offer_.release_port();
    if (route_ == nullptr) {
        give_up();
        return true;
    }
    state_ = state::moving;
    if (wants_fin()) {
        services_.pending.message_decided(id_);  // where UCP has asked before the answer came
    }
    progress();
    return true;
}

}  // namespace cuda_nc::uct
