#include "uct/cuda_nc/protocol/control_channel.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "ucs/base/log.hpp"
#include "ucs/base/status.hpp"
#include "uct/cuda_nc/iface.hpp"

namespace cuda_nc::uct {

using namespace wire;

namespace {

// Whether the peer waits for ever, or keeps memory, without such a message.
bool must_arrive(control_kind kind) noexcept {
    return kind == control_kind::cancel || kind == control_kind::ended ||
           kind == control_kind::stop || kind == control_kind::pulled;
}

control make(control_kind kind, uint64_t to, uint64_t from) noexcept {
    control message = {};
    message.kind = kind;
    message.to = to;
    message.from = from;
    return message;
}

}  // namespace

bool control_channel::try_send(endpoint &ep, const control &message) noexcept {
    control stamped = message;
    stamped.version = protocol_version;
    stamped.identity = iface_.address.identity;
    auto pack = [](void *destination, void *arg) -> size_t {
        auto *from = static_cast<control *>(arg);
        std::memcpy(destination, from, length_of(from->kind));
        return length_of(from->kind);
    };
    ssize_t sent = ep.carrier->iface->ops.ep_am_bcopy(ep.carrier, control_id, pack, &stamped, 0);
    if (sent < 0 && sent != UCS_ERR_NO_RESOURCE) {
        nc_debug("the carrier lost a control message: %s",
                 status_text(static_cast<ucs_status_t>(sent)));
        return true;  // the endpoint is lost too
    }
    return sent >= 0;
}

// The carrier `self` delivers a message while it sends it: messages to this interface wait for
// progress, so that no message is changed in the middle of its own call.
bool control_channel::send_now(endpoint &ep, const control &message) noexcept {
    return !ep.is_loopback && !has_unsent(&ep) && try_send(ep, message);
}

void control_channel::send(endpoint *ep, const control &message) noexcept try {
    if (ep != nullptr && !send_now(*ep, message)) {
        unsent_.push_back({ep, message});
        progress_.start();
    }
} catch (const std::bad_alloc &) {
    nc_error("out of memory for a control message: a message between GPUs may never end");
}

void control_channel::send(endpoint *ep, control_kind kind, uint64_t to, uint64_t from) noexcept {
    send(ep, make(kind, to, from));
}

void control_channel::send_to_interface(uint64_t interface, control_kind kind, uint64_t to,
                                        uint64_t from) noexcept {
    auto peer = iface_.peers.find(interface);
    if (peer == iface_.peers.end()) {
        keep(interface, {kind, to, from});
    } else {
        send(peer->second, kind, to, from);
    }
}

void control_channel::keep(uint64_t interface, const kept &what) noexcept try {
    constexpr size_t most = 1024;  // what is not said holds memory until a process ends
    if (kept_.size() < most) {
        kept_.emplace(interface, what);
    }
} catch (const std::bad_alloc &) {
    // as above
}

bool control_channel::has_unsent(const endpoint *ep) const noexcept {
    return std::any_of(unsent_.begin(), unsent_.end(),
                       [ep](const unsent &one) { return one.ep == ep; });
}

// In order for each endpoint; an endpoint without room holds no other up.
unsigned control_channel::progress() noexcept {
    unsigned happened = 0;
    const endpoint *full = nullptr;
    for (size_t i = 0; i < unsent_.size();) {
        endpoint &ep = *unsent_[i].ep;
        const bool after_another =
            std::any_of(unsent_.begin(), unsent_.begin() + static_cast<ptrdiff_t>(i),
                        [&ep](const unsent &one) { return one.ep == &ep; });
        if (&ep == full || after_another || !try_send(ep, unsent_[i].message)) {
            full = &ep;
            ++i;
            continue;
        }
        unsent_.erase(unsent_.begin() + static_cast<ptrdiff_t>(i));
        ++happened;
    }
    return happened;
}

void control_channel::endpoint_connected(endpoint &ep) noexcept {
    auto [at, end] = kept_.equal_range(ep.peer);
    for (; at != end; at = kept_.erase(at)) {
        send_to_interface(ep.peer, at->second.kind, at->second.to, at->second.from);
    }
}

void control_channel::endpoint_closed(const endpoint &ep) noexcept {
    for (const auto &[to, message] : unsent_) {
        if (to == &ep && must_arrive(message.kind)) {
            keep(ep.peer, {message.kind, message.to, message.from});
        }
    }
    unsent_.erase(std::remove_if(unsent_.begin(), unsent_.end(),
                                 [&ep](const unsent &one) { return one.ep == &ep; }),
                  unsent_.end());
}

}  // namespace cuda_nc::uct
