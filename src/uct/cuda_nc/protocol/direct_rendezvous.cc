// What goes with UCP's own RTS, ahead of its RTR, or in the place of an RTR.
#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include "ucs/base/log.hpp"
#include "ucs/base/trace.hpp"
#include "ucs/gpu/span.hpp"
#include "ucs/layout/layout.hpp"
#include "ucs/model/choices.hpp"
#include "uct/cuda_nc/memory/quarantine.hpp"
#include "uct/cuda_nc/peers.hpp"
#include "uct/cuda_nc/protocol/direct_messages.hpp"
#include "uct/cuda_nc/protocol/receive_message.hpp"
#include "uct/cuda_nc/protocol/send_message.hpp"
#include "uct/cuda_nc/protocol/source.hpp"

namespace cuda_nc::uct {

using namespace wire;

namespace {

constexpr size_t longest_short = 256;  // bytes of an RTS, RTR or ATS by am_short

// Whether an offer goes ahead of the RTR. One of contiguous bytes always does: the receive may be
// into contiguous memory too, and once UCP has the RTR of such a receive it moves the bytes by
// itself (but not from another host). Where the receiver has not found a receive of ours yet, an
// offer with UCP's data tells it now and then whether it can.
bool goes_ahead(endpoint &ep, const user_buffer &buffer) noexcept {
    constexpr uint32_t between_others = 17;  // messages of a program repeat by other numbers
    char *base;
    const layout *what = buffer.laid_out(&base);
    const bool is_contiguous = what != nullptr && what->kind() == shape::contiguous;
    return ep.known_receivers == receivers_known::yes || (is_contiguous && !ep.by_network) ||
           (ep.known_receivers == receivers_known::perhaps &&
            (buffer.packed_bytes() <= send_message::first_bytes ||
             (!ep.by_network && ++ep.offers_in_doubt % between_others != 0)));
}

struct call_counter {
    explicit call_counter(unsigned &calls) noexcept : all(calls) { ++all; }
    ~call_counter() { --all; }
    call_counter(const call_counter &) = delete;
    call_counter &operator=(const call_counter &) = delete;
    unsigned &all;
};

}  // namespace

// The carrier self delivers at once: there early offers and answers would come too late.
//
// Late offers have no description of their source, and a sender that gets the RTR before the answer
// would offer once more: RTS and RTR stay behind what was to go before.
direct_messages::leaving direct_messages::before(endpoint &ep, uint8_t id, const void *message,
                                                 size_t length) noexcept try {
    static_assert(sizeof(rts_head) == sizeof(rtr_head));
    if (id == ats_id) {
        uint64_t request;
        if (!early_.empty() && length >= sizeof(request)) {
            std::memcpy(&request, message, sizeof(request));
            if (early_.forget_plain(request, ep.peer)) {
                note_untaken(ep);
            }
        }
        return leaving::now;
    }
    if (ep.is_loopback || length < sizeof(rtr_head)) {
        return leaving::now;
    }
    if (id == rts_id) {
        rts_head rts;
        std::memcpy(&rts, message, sizeof(rts));
        return rts.address != 0 ? before_plain_rts(ep, rts, message, length)
                                : before_rts(ep, rts, message, length);
    }
    leaving what = leaving::now;
    rtr_head rtr;
    std::memcpy(&rtr, message, sizeof(rtr));
    if (!early_.empty() || ep.told_not_to_describe) {
        const call_counter call(services_.rtr_calls);
        what = before_rtr(ep, rtr, length);
    }
    if (rtr.address == 0 && what != leaving::later && requests_.find(rtr.request) != nullptr) {
        services_.endpoints_of_requests.learn(rtr.request);
    }
    return what == leaving::now && !services_.control.send_unsent(ep) ? leaving::later : what;
} catch (const std::bad_alloc &) {
    return leaving::now;  // the message is offered when UCP asks for its bytes
}

// Only now: while an RTR waits for room its receive must not end.
ssize_t direct_messages::after(endpoint &ep, uint8_t id, const void *message, size_t length,
                               ssize_t sent) noexcept {
    if (id != rtr_id || ep.is_loopback || length < sizeof(rtr_head)) {
        return sent;
    }
    rtr_head rtr;
    std::memcpy(&rtr, message, sizeof(rtr));
    if (sent == UCS_ERR_NO_RESOURCE) {
        // One that cannot be noted does not wait: UCP ends its receive with the error.
        return services_.rtrs.add(rtr.request, ep) ? sent : ssize_t{UCS_ERR_NO_MEMORY};
    }
    services_.rtrs.remove(rtr.request);
    if (sent >= 0) {
        rtr_has_left(ep, rtr);
    }
    return sent;
}

ucs_status_t direct_messages::send_rendezvous_short(endpoint &ep, uint8_t id, uint64_t header,
                                                    const void *payload, unsigned length) noexcept {
    const auto carrier_am_short = ep.carrier->iface->ops.ep_am_short;
    char message[longest_short];
    if (length > sizeof(message) - sizeof(header)) {
        return carrier_am_short(ep.carrier, id, header, payload, length);  // UCP's are shorter
    }
    std::memcpy(message, &header, sizeof(header));
    std::memcpy(message + sizeof(header), payload, length);
    const size_t whole = sizeof(header) + length;
    ucs_status_t sent = UCS_OK;
    switch (before(ep, id, message, whole)) {
        case leaving::now:
            sent = carrier_am_short(ep.carrier, id, header, payload, length);
            break;
        case leaving::later:
            sent = UCS_ERR_NO_RESOURCE;
            break;
        case leaving::never:
            break;
    }
    return static_cast<ucs_status_t>(after(ep, id, message, whole, sent));
}

ssize_t direct_messages::send_rendezvous(endpoint &ep, uint8_t id, abi::uct_pack_callback pack,
                                         void *arg, unsigned flags) noexcept {
    abi::uct_iface_ops &carrier = ep.carrier->iface->ops;
    if (scratch_ == nullptr) {
        scratch_.reset(new (std::nothrow) char[services_.iface.longest_bcopy]);
    }
    if (scratch_ == nullptr) {
        return carrier.ep_am_bcopy(ep.carrier, id, pack, arg, flags);
    }
    struct {
        const char *bytes;
        size_t length;
    } packed = {scratch_.get(), pack(scratch_.get(), arg)};
    auto copy = [](void *destination, void *from) -> size_t {
        const auto *what = static_cast<decltype(packed) *>(from);
        std::memcpy(destination, what->bytes, what->length);
        return what->length;
    };
    ssize_t sent = static_cast<ssize_t>(packed.length);
    switch (before(ep, id, packed.bytes, packed.length)) {
        case leaving::now:
            sent = carrier.ep_am_bcopy(ep.carrier, id, copy, &packed, flags);
            break;
        case leaving::later:
            sent = UCS_ERR_NO_RESOURCE;
            break;
        case leaving::never:
            break;
    }
    return after(ep, id, packed.bytes, packed.length, sent);
}

// ---- RTS

// An error is UCP's to meet: its own RTS leaves.
direct_messages::leaving direct_messages::leaving_after(ucs_status_t announced) noexcept {
    return announced == UCS_OK                ? leaving::never
           : announced == UCS_ERR_NO_RESOURCE ? leaving::later
                                              : leaving::now;
}

// The RTS leaves with the offer. There is no announcement where the carrier takes none so long.
direct_messages::leaving direct_messages::before_rts(endpoint &ep, const rts_head &rts,
                                                     const void *bytes, size_t length) {
    if (ep.is_out_of_reach() || !can_announce(length)) {
        return leaving::now;
    }
    user_buffer *buffer = requests_.find_send(rts.request);
    if (buffer == nullptr || buffer->message != nullptr ||
        buffer->packed_bytes() < model::direct_thresh(false) || !goes_ahead(ep, *buffer)) {
        return leaving::now;
    }
    if (!services_.control.send_unsent(ep)) {
        return leaving::later;
    }
    send_message &begun =
        services_.messages.add<send_message>(services_, ep, *buffer, next_message_id());
    buffer->message = &begun;
    const ucs_status_t sent = begun.announce(rts.request, bytes, length);
    if (sent != UCS_OK) {
        services_.messages.erase(begun);
        return leaving_after(sent);
    }
    services_.progress.start();
    return leaving::never;
}

bool direct_messages::can_announce(size_t rts_length) const noexcept {
    return rts_length <= services_.iface.longest_bcopy &&
           services_.iface.longest_bcopy - rts_length >= longest_announcement;
}

// The sender keeps nothing: a receiver that takes the offer reads the bytes, and then answers the
// RTS by ATS, as UCP's own receivers do that read.
direct_messages::leaving direct_messages::before_plain_rts(endpoint &ep, const rts_head &rts,
                                                           const void *bytes, size_t length) {
    if (!ep.describes || ep.by_network || rts.size < model::direct_thresh(false) ||
        !can_announce(length)) {
        return leaving::now;
    }
    const gpu::memory_info memory =
        gpu::platform::instance().query(reinterpret_cast<const void *>(rts.address));
    if (!gpu::is_on_gpu(memory.kind)) {
        return leaving::now;
    }
    announcement what = {0, services_.iface.address.identity, {}};
    what.offer.source = describe_memory(memory, rts.address, rts.size);
    if (what.offer.source.allocation == 0 || !name_gpu(memory.device, &what.offer.offer)) {
        return leaving::now;
    }
    what.offer.offer.process = services_.process;
    return services_.control.send_unsent(ep)
               ? leaving_after(services_.control.announce(ep, what, bytes, length))
               : leaving::later;
}

// ---- RTR

// What does not fit together is an RTS without an offer.
void direct_messages::handle_announcement(char *message, size_t length) noexcept {
    early_offers::entry offer;
    const size_t rts_at = read_announcement(message, length, &offer.what);
    if (rts_at == 0) {
        return;
    }
    char *const rts = message + rts_at;
    rts_head head;
    std::memcpy(&head, rts, sizeof(head));
    offer.total = head.size;
    const bool is_offer = find_peer(services_.iface, offer.what.identity) != nullptr &&
                          (offer.what.message == 0) == (head.address != 0);
    if (is_offer) {
        trace_mark("offer comes", offer.what.message);
    } else {
        early_.handle_rts(rts, length - rts_at);
    }
    early_offers::arriving now(early_, head.request, is_offer ? &offer : nullptr);
    if (deliver_to_ucp(services_.iface, rts_id, rts, length - rts_at) != UCS_OK) {
        now.forget();
    }
}

// Who receives into contiguous memory alone has no use for offers of contiguous memory.
void direct_messages::note_untaken(endpoint &ep) noexcept {
    if (++ep.untaken > ep.most_untaken) {
        ask_for_descriptions(ep, false);
    }
}

void direct_messages::ask_for_descriptions(endpoint &ep, bool wanted) noexcept {
    if (ep.told_not_to_describe != wanted) {
        return;  // that is what the peer does
    }
    ep.told_not_to_describe = !wanted;
    ep.untaken = 0;
    if (wanted && ep.most_untaken < UINT32_MAX / 8) {
        // That a message went slowly for this reason shall not happen again and again.
        ep.most_untaken *= 8;
    }
    control message = {};
    message.kind = control_kind::describe;
    message.slot = wanted ? 1 : 0;
    services_.control.send(&ep, message);
}

direct_messages::leaving direct_messages::before_rtr(endpoint &ep, const rtr_head &rtr,
                                                     size_t length) {
    const early_offers::taken offer = early_.extract(rtr.send_request, ep.peer);
    if (!offer) {
        const bool misses_one = rtr.address == 0 && ep.told_not_to_describe;
        const user_buffer *buffer = misses_one ? requests_.find(rtr.request) : nullptr;
        // One that has its message has been here before: the answer had no room.
        if (buffer != nullptr && buffer->message == nullptr) {
            ask_for_descriptions(ep, true);  // for the next ones
        }
        return leaving::now;
    }
    const uint64_t message = offer->what.message;
    const bool from_plain = message == 0, into_plain = rtr.address != 0;
    if (from_plain && into_plain) {
        note_untaken(ep);
        return leaving::now;
    }
    if (into_plain && accept_plain(ep, *offer, rtr)) {
        return leaving::now;
    }
    user_buffer *buffer = into_plain ? nullptr : requests_.find(rtr.request);
    // An RTR that asks for the whole message, and has nothing behind it.
    const bool may_be_held = length == sizeof(rtr) && rtr.offset == 0 && rtr.size == offer->total;
    const rtr_head *held = may_be_held ? &rtr : nullptr;
    outcome what;
    if (from_plain) {
        what = accept(ep, buffer, 0, offer->total, offer->what.offer, 0, rtr.request, held);
        ep.untaken = what == outcome::declined ? ep.untaken : 0;
    } else {
        what = accept_or_decline(ep, buffer, message, offer->total, offer->what.offer, 0,
                                 rtr.request, held);
    }
    return what == outcome::holds_rtr ? leaving::never : leaving::now;
}

// UCP has asked for the bytes of a receive.
void direct_messages::rtr_has_left(endpoint &ep, const rtr_head &rtr) noexcept {
    user_buffer *buffer = rtr.address == 0 ? requests_.find(rtr.request) : nullptr;
    if (buffer != nullptr && buffer->message == nullptr) {
        services_.fragments.add(*buffer, process_of_peer(ep), rtr.request, rtr.size);
        services_.progress.start();
    }
}

std::unique_ptr<plain_memory> direct_messages::find_plain(const rtr_head &rtr) const noexcept {
    const gpu::memory_info memory =
        gpu::platform::instance().query(reinterpret_cast<const void *>(rtr.address));
    if (!gpu::is_on_gpu(memory.kind) || rtr.size == 0) {
        return nullptr;
    }
    const uint64_t end = rtr.address + rtr.size;
    if (memory.allocation.id == 0
            ? !gpu::reaches_end(memory, rtr.address, end)
            : gpu::find_span(memory.device, memory.allocation, rtr.address, end).id == 0) {
        return nullptr;
    }
    return std::unique_ptr<plain_memory>(new (std::nothrow)
                                             plain_memory(memory, rtr.address, rtr.size));
}

// From one of our datatypes into contiguous memory.
bool direct_messages::accept_plain(endpoint &ep, const early_offers::entry &offer,
                                   const rtr_head &rtr) {
    const early_offer &its = offer.what.offer;
    if (ep.by_network || rtr.size != offer.total || rtr.offset != 0 ||
        !agree_on_process(ep, its.offer.process, services_.process)) {
        return false;
    }
    std::unique_ptr<plain_memory> memory = find_plain(rtr);
    if (memory == nullptr) {
        return false;
    }
    release_quarantined();
    receive_message &begun =
        services_.messages.add<receive_message>(services_, ep, std::move(memory), next_message_id(),
                                                offer.what.message, rtr.request, rtr.size);
    // UCP's RTR says whose the bytes are: no later offer needs first bytes because of this one. But
    // where receives of ours are not found by UCP's requests, this one says nothing of those.
    const bool are_unknown = requests_.answer_flags(rtr.request) == unknown_receivers;
    bool holds_rtr = false;  // none was given
    if (!begun.accept(its, are_unknown ? unknown_receivers : known_receivers, &holds_rtr)) {
        services_.messages.erase(begun);
        return false;
    }
    services_.progress.start();
    services_.launch_early();
    return true;
}

// ---- ATS

void direct_messages::end_send(const void *ats, size_t length) noexcept {
    end_of_pull end;
    if (length != sizeof(end)) {
        return;
    }
    std::memcpy(&end, ats, sizeof(end));
    const user_buffer *buffer = requests_.find_send(end.ats.request);
    if (buffer != nullptr && buffer->message != nullptr) {
        static_cast<send_message *>(buffer->message)->handle_ats(end);
    }
}

}  // namespace cuda_nc::uct
