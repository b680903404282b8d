#include "uct/cuda_nc/protocol/offering.hpp"

#include <cstring>

#include "ucs/base/compiler.hpp"
#include "ucs/model/choices.hpp"
#include "uct/cuda_nc/ep.hpp"
#include "uct/cuda_nc/iface.hpp"
#include "uct/cuda_nc/engine/message_map.hpp"

namespace cuda_nc::uct {

using namespace wire;

// How many bytes of a message go with its offer; nothing: it cannot be offered. Where some go, UCP
// has to come for the rest.
std::optional<uint64_t> offering::choose_first(uint64_t bytes, uint64_t asked) const noexcept {
    const bool comes_again = asked >= sending::first_bytes && asked < bytes;
    if (ep_.known_receivers == receivers_known::yes ||
        (ep_.known_receivers == receivers_known::perhaps && !comes_again)) {
        return 0;
    }
    return comes_again ? std::optional<uint64_t>(sending::first_bytes) : std::nullopt;
}

// Null: this message is not for the GPUs.
sending *offering::begin(direct_end &end) noexcept try {
    if (!ep_.direct || end.packed_bytes() < model::direct_thresh(false)) {
        return nullptr;
    }
    auto made = std::make_unique<sending>(owner_, ep_, end, next_message_id());
    uint64_t id = made->id();
    sending *begun = owner_.sends_.emplace(id, std::move(made)).first->second.get();
    end.message = begun;
    return begun;
} catch (const std::bad_alloc &) {
    return nullptr;
}

pack_answer offering::ask(direct_end &end, uint64_t offset, size_t *length_p) noexcept {
    const std::optional<uint64_t> first = choose_first(end.packed_bytes(), *length_p);
    message_ = end.message != nullptr ? static_cast<sending *>(end.message)
               : offset == 0 && first ? begin(end)
                                      : nullptr;
    if (message_ == nullptr) {
        return answer_;
    }
    id_ = message_->id();
    bool in_order = message_->ep() == &ep_ && offset == message_->first();
    switch (message_->now()) {
        case sending::state::made:
            in_order = in_order && first.has_value();
            offers_ = true;
            *length_p = first_ = first.value_or(0);
            answer_ = first_ != 0 ? pack_answer::first : pack_answer::busy;
            break;
        case sending::state::offered:
            offers_ = message_->take_unanswered();
            answer_ = pack_answer::busy;
            break;
        case sending::state::moving:
            answer_ = pack_answer::busy;
            ends_ = message_->wants_end();
            break;
        case sending::state::complete:
            answer_ = pack_answer::rest;
            ends_ = !message_->end_is_sent();
            break;
        case sending::state::declined:
            return answer_;
    }
    // Over another UCP lane, or again from the start: the carrier serves any order. Where the
    // receiver has the end already its message takes no more bytes.
    if (!in_order && !message_->end_is_sent()) {
        answer_ = pack_answer::host;
        offers_ = ends_ = false;
        message_->leave();
        message_ = nullptr;
    }
    return answer_;
}

size_t offering::compose(void *destination, void *self) noexcept {
    auto &call = *static_cast<offering *>(self);
    size_t packed = call.pack_(destination, call.arg_);
    current_ = nullptr;  // the carrier self goes on to deliver, and UCP may send what comes next
    if (CUDA_NC_LIKELY(call.answer_ == pack_answer::host)) {
        return packed;
    }
    call.claimed_ = packed;
    data_prefix prefix = {};
    prefix.identity = call.owner_.iface().address.identity;
    auto kind = data_kind::nothing;
    size_t kept = 0;  // of UCP's message
    const pipe_offer *terms = nullptr;
    if (call.offers_) {
        kind = data_kind::offer;
        kept = sizeof(rndv_header) + call.first_;
        prefix.message = call.message_->id();
        prefix.length = call.message_->total();
        terms = &call.message_->offer();
    } else if (call.ends_) {
        kind = data_kind::rest;
        kept = sizeof(rndv_header);
        prefix.message = call.message_->receiver();
        prefix.length = call.message_->total() - call.message_->first();
    }
    prefix.mark_and_kind = mark | static_cast<uint64_t>(kind);
    auto *start = static_cast<char *>(destination);
    size_t ahead = sizeof(prefix) + (terms != nullptr ? sizeof(*terms) : 0);
    std::memmove(start + ahead, start, kept);
    std::memcpy(start, &prefix, sizeof(prefix));
    if (terms != nullptr) {
        std::memcpy(start + sizeof(prefix), terms, sizeof(*terms));
    }
    return ahead + kept;
}

ssize_t offering::conclude(ssize_t sent) noexcept {
    owner_.refused_ = nullptr;
    if (sent < 0) {
        return sent;  // the carrier's; UCP comes back to the same bytes
    }
    // The carrier self has delivered meanwhile, and the user's callback may have closed the
    // endpoint.
    sending *message = find(owner_.sends_, id_);
    if (message == nullptr) {
        return answer_ == pack_answer::busy ? static_cast<ssize_t>(UCS_ERR_NO_RESOURCE)
                                            : static_cast<ssize_t>(claimed_);
    }
    if (offers_) {
        message->offered(first_);
    }
    if (ends_) {
        message->end_sent();
    }
    switch (answer_) {
        case pack_answer::first:
            break;
        case pack_answer::rest:
            message->rest_sent();
            break;
        case pack_answer::busy:
            owner_.refused_ = &ep_;
            owner_.refused_for_ = id_;
            return UCS_ERR_NO_RESOURCE;
        case pack_answer::host:
            break;
    }
    return static_cast<ssize_t>(claimed_);
}

}  // namespace cuda_nc::uct
