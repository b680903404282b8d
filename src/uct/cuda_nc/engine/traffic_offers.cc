// Rendezvous data, offers with it and ahead of it.
#include "uct/cuda_nc/engine/traffic.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "ucs/base/compiler.hpp"
#include "ucs/base/log.hpp"
#include "ucs/model/choices.hpp"
#include "uct/cuda_nc/iface.hpp"
#include "uct/cuda_nc/engine/message_map.hpp"
#include "uct/cuda_nc/protocol/offering.hpp"
#include "uct/cuda_nc/memory/quarantine.hpp"
#include "uct/cuda_nc/protocol/receiving.hpp"
#include "uct/cuda_nc/protocol/sending.hpp"

namespace cuda_nc::uct {

using namespace abi;
using namespace wire;

ssize_t traffic::send_rndv_data(endpoint &ep, uct_pack_callback pack, void *arg,
                                unsigned flags) noexcept {
    offering call(*this, ep, pack, arg);
    ssize_t sent = ep.carrier->iface->ops.ep_am_bcopy(ep.carrier, rndv_data_id, offering::compose,
                                                      &call, flags);
    if (CUDA_NC_LIKELY(call.answer() == pack_answer::host)) {
        refused_ = nullptr;
        return sent;
    }
    start_progress();
    return call.conclude(sent);
}

void traffic::deliver(void *data, size_t length, unpack_call &call) noexcept {
    const uct_am_handler &handler = iface_.super.am[rndv_data_id];
    unpack_call::current_ = &call;
    handler.cb(handler.arg, data, length, 0);
    unpack_call::current_ = nullptr;
}

void traffic::take_data(char *data, size_t length) noexcept {
    data_prefix prefix;
    if (length < sizeof(prefix)) {
        return;
    }
    std::memcpy(&prefix, data, sizeof(prefix));
    switch (static_cast<data_kind>(prefix.mark_and_kind & ~mark)) {
        case data_kind::nothing:
            break;
        case data_kind::offer:
            take_offer(prefix, data + sizeof(prefix), length - sizeof(prefix));
            break;
        case data_kind::rest:
            take_rest(prefix, data + sizeof(prefix), length - sizeof(prefix));
            break;
    }
}

void traffic::take_offer(const data_prefix &prefix, char *message, size_t length) noexcept {
    early_terms terms = {};
    rndv_header header;
    if (length < sizeof(terms.offer) + sizeof(header)) {
        return;
    }
    std::memcpy(&terms.offer, message, sizeof(terms.offer));
    message += sizeof(terms.offer);
    length -= sizeof(terms.offer);
    std::memcpy(&header, message, sizeof(header));
    uint64_t first = length - sizeof(header);
    direct_end *end;
    if (first == 0) {
        end = requests_.find(header.request);
    } else {
        uint64_t word = requests_.read(header.request);
        unpack_call call;
        deliver(message, length, call);  // whatever comes of the offer
        // gone where these bytes were all that UCP awaited
        end = requests_.find_state(call.taker);
        if (end != nullptr && request_finder::is_address(header.request)) {
            requests_.learn(word, end->ucx_state());
        }
    }
    auto peer = iface_.peers.find(prefix.identity);
    if (peer == iface_.peers.end()) {
        return;  // no way to answer; the sender's patience ends
    }
    if (peer->second->loops) {
        const sending *own = find(sends_, prefix.message);
        terms.source = own != nullptr ? own->source() : source_terms{};
    }
    if (!is_accepted(*peer->second, prefix.message)) {
        accept_or_decline(*peer->second, end, prefix.message, prefix.length, terms, first,
                          header.request);
    }
}

// An early offer that was answered when UCP already asked for its bytes.
bool traffic::is_accepted(const endpoint &ep, uint64_t message) const noexcept {
    return std::any_of(receives_.begin(), receives_.end(), [&](const auto &one) {
        return one.second->ep() == &ep && one.second->sender() == message;
    });
}

void traffic::accept_or_decline(endpoint &ep, direct_end *end, uint64_t message, uint64_t total,
                                const early_terms &terms, uint64_t first,
                                uint64_t request) noexcept {
    if (!accept(ep, end, message, total, terms, first, request)) {
        control answer = {};
        answer.kind = control_kind::decline;
        answer.flags = requests_.answer_flags(request) |
                       (ep.by_carrier && iface_.gpu_memory->refuses() ? never : 0);
        answer.to = message;
        send_control(&ep, answer);
    }
}

// False: not ours, or out of resources.
bool traffic::accept(endpoint &ep, direct_end *end, uint64_t message, uint64_t total,
                     const early_terms &terms, uint64_t first, uint64_t request) noexcept try {
    if (end == nullptr || end->message != nullptr || first >= total ||
        total > end->packed_bytes()) {
        return false;
    }
    release_quarantined();
    auto made = std::make_unique<receiving>(*this, ep, *end, next_message_id(), message, request,
                                            total, first);
    uint64_t id = made->id();
    receiving &taken = *receives_.emplace(id, std::move(made)).first->second;
    const uint32_t flags = requests_.answer_flags(request);
    const bool is_taken = ep.by_carrier ? taken.accept_puts(flags)
                                        : (first == 0 && taken.accept_pull(terms, flags)) ||
                                              taken.accept_pipe(terms.offer, flags) ||
                                              taken.accept_slots(terms.offer, flags);
    if (is_taken) {
        start_progress();
        launch_if_alone();
        return true;
    }
    receives_.erase(id);
    return false;
} catch (const std::bad_alloc &) {
    return false;
}

// ---- offers ahead of UCP's own messages

// UCP uses a send's number again, and may answer it in ways that do not pass here: an offer is of
// the first RTS that follows it alone.
void traffic::rts_comes(const void *data, size_t length) noexcept {
    uint64_t words[3];
    if (CUDA_NC_LIKELY(early_.empty()) || length < sizeof(words)) {
        return;
    }
    std::memcpy(words, data, sizeof(words));
    for (auto at = early_.lower_bound({words[2], 0});
         at != early_.end() && at->first.first == words[2];) {
        at = std::exchange(at->second.has_rts, true) ? early_.erase(at) : std::next(at);
    }
}

void traffic::before_short(endpoint &ep, uint8_t id, uint64_t header, const void *payload,
                           size_t length) noexcept try {
    if (ep.loops) {
        return;  // they would come too late
    }
    uint64_t words[2];
    if (id == rts_id) {
        if (length < sizeof(words) || ep.known_receivers == receivers_known::no) {
            return;
        }
        std::memcpy(words, payload, sizeof(words));
        direct_end *end = requests_.find_send(words[1]);
        if (end == nullptr || end->message != nullptr ||
            end->packed_bytes() < model::direct_thresh(false) ||
            (ep.known_receivers == receivers_known::perhaps &&
             end->packed_bytes() > sending::first_bytes)) {
            return;
        }
        auto made = std::make_unique<sending>(*this, ep, *end, next_message_id());
        uint64_t number = made->id();
        sending &begun = *sends_.emplace(number, std::move(made)).first->second;
        end->message = &begun;
        if (!begun.offer_early(words[1])) {  // the RTS would be first
            sends_.erase(number);
            return;
        }
        start_progress();
    } else if (!early_.empty() && length >= sizeof(words[0])) {
        auto found = early_.find({header, ep.peer});
        if (found != early_.end() && found->second.has_rts) {
            early_offer offer = found->second;
            early_.erase(found);
            std::memcpy(words, payload, sizeof(words[0]));
            direct_end *end = requests_.find(words[0]);
            accept_or_decline(ep, end, offer.message, offer.total, offer.terms, 0, words[0]);
        }
    }
} catch (const std::bad_alloc &) {
    // it is offered when UCP asks for its bytes
}

void traffic::take_early(const control &message) noexcept try {
    constexpr size_t most = 4096;  // beyond, an offer is made again with UCP's data
    if (early_.size() < most && iface_.peers.count(message.identity) != 0) {
        early_[{message.offset, message.identity}] = {message.from, message.length, message.early};
    }
} catch (const std::bad_alloc &) {
    // likewise
}

void traffic::withdraw(const control &message) noexcept {
    auto found = early_.find({message.offset, message.identity});
    if (found != early_.end() && found->second.message == message.from) {
        early_.erase(found);
    }
}

void traffic::take_rest(const data_prefix &prefix, const char *message, size_t length) noexcept {
    rndv_header header;
    receiving *receive = find_receive({prefix.message, prefix.identity});
    if (length != sizeof(header) || receive == nullptr) {
        nc_debug("a message ends that had not begun, or whose endpoint is closed");
        return;
    }
    std::memcpy(&header, message, sizeof(header));
    receive->take_rest(header, prefix.length);
}

}  // namespace cuda_nc::uct
