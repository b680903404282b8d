// What a sender offers, and what it makes of the receiver's answer.
#include <algorithm>
#include <cstring>

#include "ucs/base/log.hpp"
#include "ucs/base/settings.hpp"
#include "ucs/base/trace.hpp"
#include "ucs/layout/layout.hpp"
#include "uct/cuda_nc/counters.hpp"
#include "uct/cuda_nc/iface.hpp"
#include "uct/cuda_nc/pipe/port.hpp"
#include "uct/cuda_nc/protocol/route_network.hpp"
#include "uct/cuda_nc/protocol/route_pipe.hpp"
#include "uct/cuda_nc/protocol/route_pull.hpp"
#include "uct/cuda_nc/protocol/route_slots.hpp"
#include "uct/cuda_nc/protocol/send_message.hpp"
#include "uct/cuda_nc/protocol/source.hpp"

namespace cuda_nc::uct {

// The receiver answers when its process next enters UCX. Where it does not for so long the bytes go
// into the carrier's queues meanwhile, as they do without the transport.
constexpr auto patience = std::chrono::seconds(1);

bool send_message::by_network() const noexcept {
    return ep_ != nullptr && ep_->by_network;
}

// Without a port the offer is of slots alone.
void send_message::make_offer() noexcept {
    if (by_network()) {
        return;  // nothing of this machine means anything there
    }
    gpu::device *gpu = gpu::platform::instance().get_device(device_);
    offer_.process = services_.process;
    char *base;
    if (const layout *what = buffer_->laid_out(&base)) {
        offer_.hash_low = what->hash().low;
        offer_.hash_high = what->hash().high;
    }
    if (gpu == nullptr) {
        return;
    }
    const std::string &place = gpu->properties().bus_id;
    if (place.empty() || place.size() > sizeof(offer_.gpu)) {
        return;
    }
    std::memcpy(offer_.gpu, place.data(), place.size());
    offer_.flags = ep_->host_slots ? wire::host_slots : 0;
    if (!ep_->host_slots && uses_pipes() && channel_limit(device_) != 0) {
        port_ = acquire_port(device_);
    }
    if (port_ == nullptr) {
        return;
    }
    offer_.channels = message_channels(device_);
    offer_.sequence = port_->sequence;
    offer_.credits = port_->words_offset;
    offer_.memory = *port_->handle;
}

void send_message::offered(uint64_t first) noexcept {
    state_ = state::offered;
    trace_mark("offer leaves", id_);
    first_ = first;
    deadline_ = clock::now() + patience;
}

wire::source_descriptor send_message::source() const noexcept {
    const bool may_be_pulled = !by_network() && uses_pipes() && total_ <= config().pull_max;
    return may_be_pulled ? describe_source(*buffer_) : wire::source_descriptor{};
}

bool send_message::send_early_offer(uint64_t request) noexcept {
    wire::control message = {};
    message.kind = wire::control_kind::early_offer;
    message.from = id_;
    message.offset = request;
    message.length = total_;
    message.early = {offer_, source()};
    if (!services_.control.send_now(*ep_, message)) {
        return false;
    }
    state_ = state::offered;
    deadline_ = clock::time_point::max();  // the receive may be posted late
    early_request_ = request;
    return true;
}

bool send_message::consume_unanswered() noexcept {
    bool unanswered = early_request_ != 0;
    early_request_ = 0;
    return unanswered;
}

void send_message::learn_receivers(uint32_t flags) noexcept {
    if (ep_ != nullptr) {
        ep_->known_receivers = (flags & wire::known_receivers) != 0     ? receivers_known::yes
                               : (flags & wire::unknown_receivers) != 0 ? receivers_known::no
                                                                        : receivers_known::perhaps;
    }
}

// The receiver's memory cannot be reached. This message goes in fragments; later ones to the same
// peer are offered otherwise, or not at all.
void send_message::note_unreachable(const wire::control &answer) noexcept {
    const bool on_host =
        answer.kind == wire::control_kind::accept_slots && (answer.flags & wire::host_slots) != 0;
    if (ep_ == nullptr) {
        return;
    }
    if (ep_->by_network) {
        ep_->may_go_direct = !services_.iface.gpu_memory->refuses();
    } else if (!on_host) {
        ep_->host_slots = true;
    } else if (ep_->host_slots) {
        ep_->may_go_direct = false;
    }
}

void send_message::handle_decline(const wire::control &answer) noexcept {
    learn_receivers(answer.flags);
    if ((answer.flags & wire::never) != 0 && by_network()) {
        ep_->may_go_direct = false;
    }
    give_up();
}

// Null: the answer makes no sense here, or the route cannot be used.
std::unique_ptr<send_route> send_message::open_route(const wire::control &answer) noexcept {
    using kind = wire::control_kind;
    if (by_network() != (answer.kind == kind::accept_network)) {
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
            route = pipe_sender::open(context, answer, port_, offer_.channels, &unreachable);
            if (route != nullptr) {
                port_ = nullptr;  // it is the route's now
            }
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
    if (unreachable) {
        note_unreachable(answer);
    }
    return route;
}

bool send_message::handle_answer(const wire::control &answer) noexcept {
    if (state_ != state::offered || ep_ == nullptr) {
        return false;
    }
    trace_mark("answer comes", id_);
    receiver_ = answer.from;
    if (consume_unanswered()) {
        count(counters::all().early);
    }
    learn_receivers(answer.flags);
    route_ = open_route(answer);
    return_port();
    if (route_ == nullptr) {
        give_up();
        return true;
    }
    state_ = state::moving;
    progress();
    return true;
}

}  // namespace cuda_nc::uct
