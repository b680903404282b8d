#include "uct/cuda_nc/protocol/control_channel.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>

#include "ucs/base/log.hpp"
#include "ucs/base/status.hpp"
#include "uct/cuda_nc/iface.hpp"
#include "uct/cuda_nc/peers.hpp"

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

control_kind kind_of(const void *message) noexcept {
    control_kind kind;
    std::memcpy(&kind, static_cast<const char *>(message) + offsetof(control, kind), sizeof(kind));
    return kind;
}

}  // namespace

ucs_status_t control_channel::send_spans(endpoint &ep, uint8_t id, const void *message,
                                         size_t length, const void *rest,
                                         size_t rest_length) noexcept {
    struct {
        const void *bytes, *rest;
        size_t length, rest_length;
    } from = {message, rest, length, rest_length};
    auto pack = [](void *destination, void *arg) -> size_t {
        const auto *what = static_cast<decltype(from) *>(arg);
        std::memcpy(destination, what->bytes, what->length);
        if (what->rest_length != 0) {
            std::memcpy(static_cast<char *>(destination) + what->length, what->rest,
                        what->rest_length);
        }
        return what->length + what->rest_length;
    };
    const ssize_t sent = ep.carrier->iface->ops.ep_am_bcopy(ep.carrier, id, pack, &from, 0);
    return sent < 0 ? static_cast<ucs_status_t>(sent) : UCS_OK;
}

// False: there is no room. What must arrive is kept where the endpoint is broken: another one may
// lead to the peer. Fewer cache lines go over by am_short than where the carrier has the bytes
// packed.
bool control_channel::try_send(endpoint &ep, uint8_t id, const void *message,
                               size_t length) noexcept {
    uint64_t header;
    ucs_status_t sent;
    if (length <= iface_.longest_short && length > sizeof(header)) {
        std::memcpy(&header, message, sizeof(header));
        sent = ep.carrier->iface->ops.ep_am_short(
            ep.carrier, id, header, static_cast<const char *>(message) + sizeof(header),
            static_cast<unsigned>(length - sizeof(header)));
    } else {
        sent = send_spans(ep, id, message, length, nullptr, 0);
    }
    if (UCS_STATUS_IS_ERR(sent) && sent != UCS_ERR_NO_RESOURCE) {
        nc_debug("the carrier lost a control message: %s", status_text(sent));
        keep_if_needed(ep, id, message, length);
    }
    return sent != UCS_ERR_NO_RESOURCE;
}

// The carrier `self` delivers a message while it sends it: messages to this interface wait for
// progress, so that no message is changed in the middle of its own call.
bool control_channel::send_now(endpoint &ep, control *message) noexcept {
    stamp(message);
    return !ep.is_loopback && !has_unsent(&ep) &&
           try_send(ep, control_id, message, length_of(message->kind));
}

ucs_status_t control_channel::announce(endpoint &ep, const announcement &what, const void *rts,
                                       size_t length) noexcept {
    if (has_unsent(&ep)) {
        return UCS_ERR_NO_RESOURCE;
    }
    char before[longest_announcement];
    const size_t written = write_announcement(what, before);
    return send_spans(ep, control_id, before, written, rts, length);
}

void control_channel::stamp(control *message) const noexcept {
    message->version = protocol_version;
    message->identity = iface_.address.identity;
}

void control_channel::add_unsent(endpoint &ep, uint8_t id, const void *message, size_t length,
                                 uint64_t from) {
    const char *bytes = static_cast<const char *>(message);
    unsent one = {id, from, {bytes, bytes + length}};
    auto [counted, is_new] = unsent_of_.try_emplace(from, 0);
    try {
        unsent_[&ep].push_back(std::move(one));
    } catch (...) {
        if (is_new) {
            unsent_of_.erase(counted);
        }
        throw;
    }
    ++counted->second;
    progress_.start();
}

void control_channel::send(endpoint *ep, const control &message) noexcept try {
    control stamped = message;
    if (ep != nullptr && !send_now(*ep, &stamped)) {
        add_unsent(*ep, control_id, &stamped, length_of(stamped.kind), stamped.from);
    }
} catch (const std::bad_alloc &) {
    nc_error("out of memory for a control message: a message between GPUs may never end");
}

void control_channel::send_of_ucp(endpoint *ep, uint8_t id, const void *message, size_t length,
                                  uint64_t from) noexcept try {
    const bool at_once = ep != nullptr && !ep->is_loopback && !has_unsent(ep);
    if (ep != nullptr && !(at_once && try_send(*ep, id, message, length))) {
        add_unsent(*ep, id, message, length, from);
    }
} catch (const std::bad_alloc &) {
    nc_error("out of memory for a message of UCP's: a message between GPUs may never end");
}

void control_channel::send(endpoint *ep, control_kind kind, uint64_t to, uint64_t from) noexcept {
    send(ep, make(kind, to, from));
}

void control_channel::send_to_interface(uint64_t interface, control_kind kind, uint64_t to,
                                        uint64_t from) noexcept {
    endpoint *peer = find_peer(iface_, interface);
    if (peer == nullptr) {
        control message = make(kind, to, from);
        stamp(&message);
        keep(interface, control_id, &message, length_of(kind));
    } else {
        send(peer, kind, to, from);
    }
}

void control_channel::refuse(uint64_t interface, uint64_t to, uint64_t from) noexcept {
    const auto waiting = unsent_of_.find(from);
    if (waiting != unsent_of_.end() ? waiting->second >= most_words_of_one
                                    : unsent_of_.size() >= most_waiting) {
        return;
    }
    send_to_interface(interface, control_kind::cancel, to, from);
}

// What is not said holds memory until a process ends. Interfaces that never return must not take
// the place of others: the oldest words are forgotten first.
void control_channel::keep(uint64_t interface, uint8_t id, const void *message,
                           size_t length) noexcept try {
    constexpr size_t most = 1024;
    if (kept_.size() == most) {
        auto [at, end] = kept_for_.equal_range(kept_.front().interface);
        while (at != end && at->second != kept_.begin()) {
            ++at;
        }
        kept_for_.erase(at);
        kept_.pop_front();
    }
    const char *bytes = static_cast<const char *>(message);
    kept_.push_back({interface, id, {bytes, bytes + length}});
    try {
        kept_for_.emplace(interface, std::prev(kept_.end()));
    } catch (...) {
        kept_.pop_back();
        throw;
    }
} catch (const std::bad_alloc &) {
    // the peer keeps its memory until our process ends
}

void control_channel::keep_if_needed(const endpoint &ep, uint8_t id, const void *message,
                                     size_t length) noexcept {
    if (id != control_id || must_arrive(kind_of(message))) {
        keep(ep.peer, id, message, length);
    }
}

// Of `message`, which has left or never will.
void control_channel::left(const unsent &message) noexcept {
    const auto counted = unsent_of_.find(message.from);
    if (counted != unsent_of_.end() && --counted->second == 0) {
        unsent_of_.erase(counted);
        looks_.look_soon(message.from);
    }
}

// The carrier `self` delivers in the call, and what it delivers to may add messages or close the
// endpoint. Meanwhile the first message's place is empty.
unsigned control_channel::send_some(endpoint &ep) noexcept {
    unsigned happened = 0;
    for (auto found = unsent_.find(&ep);
         found != unsent_.end() && !found->second.front().bytes.empty();
         found = unsent_.find(&ep)) {
        unsent first = std::move(found->second.front());
        found->second.front().bytes.clear();
        const bool is_sent = try_send(ep, first.id, first.bytes.data(), first.bytes.size());
        found = unsent_.find(&ep);
        if (!is_sent && found != unsent_.end()) {
            found->second.front() = std::move(first);
            break;
        }
        if (found != unsent_.end()) {
            found->second.pop_front();
            if (found->second.empty()) {
                unsent_.erase(found);
            }
        }
        left(first);
        ++happened;
    }
    return happened;
}

bool control_channel::send_unsent(endpoint &ep) noexcept {
    if (has_unsent(&ep)) {
        send_some(ep);
    }
    return !has_unsent(&ep);
}

// In order for each endpoint; an endpoint without room holds no other up. So many endpoints at a
// time, one after the other.
unsigned control_channel::progress() noexcept {
    constexpr size_t most = 64;
    unsigned happened = 0;
    for (size_t looks = std::min(most, unsent_.size()); looks != 0 && !unsent_.empty(); --looks) {
        auto at = unsent_.upper_bound(last_visited_);
        at = at != unsent_.end() ? at : unsent_.begin();
        last_visited_ = at->first;
        happened += send_some(*at->first);
    }
    return happened;
}

// What this endpoint loses too is kept once more.
void control_channel::endpoint_connected(endpoint &ep) noexcept {
    kept_words all;
    for (auto found = kept_for_.find(ep.peer); found != kept_for_.end();
         found = kept_for_.find(ep.peer)) {
        all.splice(all.end(), kept_, found->second);
        kept_for_.erase(found);
    }
    for (const kept &one : all) {
        send_of_ucp(&ep, one.id, one.bytes.data(), one.bytes.size(), 0);
    }
}

void control_channel::endpoint_closed(const endpoint &ep, endpoint *other) noexcept {
    const auto found = unsent_.find(&ep);
    if (found == unsent_.end()) {
        return;
    }
    const std::deque<unsent> all = std::move(found->second);
    unsent_.erase(found);
    for (const unsent &one : all) {
        if (one.bytes.empty()) {
            continue;  // it is on its way
        }
        if (other == nullptr || !move(one, *other)) {
            keep_if_needed(ep, one.id, one.bytes.data(), one.bytes.size());
        }
        left(one);
    }
}

// False: there is no memory.
bool control_channel::move(const unsent &message, endpoint &to) noexcept try {
    add_unsent(to, message.id, message.bytes.data(), message.bytes.size(), message.from);
    return true;
} catch (const std::bad_alloc &) {
    return false;
}

}  // namespace cuda_nc::uct
