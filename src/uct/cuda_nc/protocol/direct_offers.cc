// Offers and FINs that arrive with rendezvous data.
#include <cstring>
#include <memory>
#include <new>

#include "ucs/base/log.hpp"
#include "ucs/model/choices.hpp"
#include "uct/cuda_nc/peers.hpp"
#include "uct/cuda_nc/protocol/direct_messages.hpp"
#include "uct/cuda_nc/protocol/receive_message.hpp"
#include "uct/cuda_nc/protocol/send_message.hpp"
#include "uct/cuda_nc/thread_context.hpp"

namespace cuda_nc::uct {

using namespace wire;

void direct_messages::handle_data(char *data, size_t length) noexcept {
    data_prefix prefix;
    if (length < sizeof(prefix)) {
        return;
    }
    std::memcpy(&prefix, data, sizeof(prefix));
    switch (static_cast<data_kind>(prefix.mark_and_kind & ~mark)) {
        case data_kind::nothing:
            break;
        case data_kind::offer:
            handle_offer(prefix, data + sizeof(prefix), length - sizeof(prefix));
            break;
        case data_kind::fin:
            handle_fin(prefix, data + sizeof(prefix), length - sizeof(prefix));
            break;
    }
}

void direct_messages::handle_offer(const data_prefix &prefix, char *message,
                                   size_t length) noexcept {
    early_offer offer = {};
    rndv_header header;
    if (length < sizeof(offer.offer) + sizeof(header)) {
        return;
    }
    std::memcpy(&offer.offer, message, sizeof(offer.offer));
    message += sizeof(offer.offer);
    length -= sizeof(offer.offer);
    std::memcpy(&header, message, sizeof(header));
    const uint64_t first = length - sizeof(header);
    user_buffer *buffer;
    if (first == 0) {
        buffer = requests_.find(header.request);
    } else {
        const uint64_t word = requests_.read(header.request);
        unpack_call call;
        deliver_rndv_data(services_.iface, message, length, call);  // whatever becomes of the offer
        // Null where these bytes were all that UCP awaited.
        buffer = requests_.find_state(call.finder);
        if (buffer != nullptr && request_finder::is_address(header.request)) {
            requests_.learn(word, buffer->ucx_state());
        }
    }
    endpoint *peer = find_peer(services_.iface, prefix.identity);
    if (peer == nullptr) {
        return;  // no way to answer; the sender's patience ends
    }
    if (peer->is_loopback) {
        send_message *own = services_.messages.find_send(prefix.message);
        offer.source = own != nullptr ? own->offer().source() : source_descriptor{};
    }
    // An early offer may have been answered when UCP already asked for its bytes.
    const receive_message *known =
        services_.messages.find_receive_of(prefix.message, prefix.identity);
    if (known != nullptr && known->ep() != nullptr) {
        return;
    }
    accept_or_decline(*peer, buffer, prefix.message, prefix.length, offer, first, header.request,
                      nullptr);
    receive_message *begun = services_.messages.find_receive_of(prefix.message, prefix.identity);
    if (begun != nullptr && begun->ep() == peer) {
        begun->answer_by_any_endpoint();  // nothing says over which one the offer came
    }
}

void direct_messages::handle_fin(const data_prefix &prefix, const char *message,
                                 size_t length) noexcept {
    rndv_header header;
    receive_message *receive = services_.messages.find_receive({prefix.message, prefix.identity});
    if (length != sizeof(header) || receive == nullptr) {
        nc_debug("a FIN of a message that had not begun, or whose endpoint is closed, is ignored");
        return;
    }
    std::memcpy(&header, message, sizeof(header));
    receive->handle_fin(header, prefix.length);
}

direct_messages::outcome direct_messages::accept_or_decline(endpoint &ep, user_buffer *buffer,
                                                            uint64_t message, uint64_t total,
                                                            const early_offer &offer,
                                                            uint64_t first, uint64_t request,
                                                            const rtr_head *rtr) noexcept {
    const outcome what = accept(ep, buffer, message, total, offer, first, request, rtr);
    if (what == outcome::declined) {
        control answer = {};
        answer.kind = control_kind::decline;
        answer.flags = requests_.answer_flags(request) |
                       (ep.by_network && services_.iface.gpu_memory->refuses() ? never : 0);
        answer.to = message;
        services_.control.send(&ep, answer);
    }
    return what;
}

// The receive may have ended when this returns, but not where it holds the RTR.
direct_messages::outcome direct_messages::accept(endpoint &ep, user_buffer *buffer,
                                                 uint64_t message, uint64_t total,
                                                 const early_offer &offer, uint64_t first,
                                                 uint64_t request, const rtr_head *rtr) noexcept
    try {
    if ((message == 0 && (rtr == nullptr || ep.by_network)) || buffer == nullptr ||
        buffer->message != nullptr || first >= total || total > buffer->packed_bytes()) {
        return outcome::declined;
    }
    if (!ep.by_network && !agree_on_process(ep, offer.offer.process, services_.process)) {
        nc_debug("an offer names a process that is not its author's: it is declined");
        return outcome::declined;
    }
    release_quarantined();
    const uint64_t id = next_message_id();
    receive_message &begun = services_.messages.add<receive_message>(
        services_, ep, *buffer, id, message, request, total, first, rtr);
    bool holds_rtr = false;
    if (!begun.accept(offer, requests_.answer_flags(request), &holds_rtr)) {
        services_.messages.erase(begun);
        return outcome::declined;
    }
    services_.progress.start();
    if (holds_rtr) {
        return outcome::holds_rtr;  // it has begun by itself
    }
    services_.launch_early();
    return outcome::accepted;
} catch (const std::bad_alloc &) {
    return outcome::declined;
}

}  // namespace cuda_nc::uct
