#include "uct/cuda_nc/protocol/data_call.hpp"

#include <cstring>
#include <memory>
#include <new>

#include "ucs/base/compiler.hpp"
#include "ucs/model/choices.hpp"
#include "uct/cuda_nc/iface.hpp"

namespace cuda_nc::uct {

using namespace wire;

// How many bytes of a message go with its offer; nothing: it cannot be offered. Where some go, UCP
// has to come back for the others.
std::optional<uint64_t> data_call::choose_first(uint64_t bytes, uint64_t asked) const noexcept {
    const bool comes_again = asked >= send_message::first_bytes && asked < bytes;
    if (ep_.known_receivers == receivers_known::yes ||
        (ep_.known_receivers == receivers_known::perhaps && !comes_again)) {
        return 0;
    }
    return comes_again ? std::optional<uint64_t>(send_message::first_bytes) : std::nullopt;
}

// UCP's protocols pack from a record on the stack of the function that asks for the bytes. The old
// ones (UCX_PROTO_ENABLE=n) pack from the request, and must not be told that more was packed than
// the carrier takes at once: UCX with assertions ends there. UCX publishes no setting of a context,
// but this shows in each call.
bool data_call::has_old_protocols() const noexcept {
    constexpr uintptr_t most_frames = 64 << 10;  // bytes
    const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
    return reinterpret_cast<uintptr_t>(arg_) - here > most_frames;
}

// Null: this message does not go from GPU to GPU.
send_message *data_call::begin(user_buffer &buffer) noexcept try {
    if (!ep_.may_go_direct || ep_.is_out_of_reach() || has_old_protocols() ||
        buffer.packed_bytes() < model::direct_thresh(false)) {
        return nullptr;
    }
    send_message &begun =
        services_.messages.add<send_message>(services_, ep_, buffer, next_message_id());
    buffer.message = &begun;
    return &begun;
} catch (const std::bad_alloc &) {
    return nullptr;
}

void data_call::decide(std::optional<uint64_t> first, size_t *length_p) noexcept {
    switch (message_->now()) {
        case send_message::state::made:
            sends_offer_ = true;
            *length_p = first_ = first.value_or(0);
            answer_ = first_ != 0 ? pack_answer::first : pack_answer::wait;
            break;
        case send_message::state::offered:
            sends_offer_ = message_->offer().consume_unanswered();
            answer_ = pack_answer::wait;
            break;
        case send_message::state::moving:
            sends_fin_ = message_->wants_fin();
            answer_ = pack_answer::wait;
            break;
        case send_message::state::complete:
            sends_fin_ = !message_->fin_is_sent();
            answer_ = pack_answer::fin;
            break;
        case send_message::state::declined:
            break;
    }
    if (sends_offer_) {
        message_->offer().bring_port();  // nobody pulls by it
    }
}

pack_answer data_call::ask(user_buffer &buffer, uint64_t offset, size_t *length_p) noexcept {
    const std::optional<uint64_t> first = choose_first(buffer.packed_bytes(), *length_p);
    message_ = buffer.message != nullptr ? static_cast<send_message *>(buffer.message)
               : offset == 0 && first    ? begin(buffer)
                                         : nullptr;
    if (message_ == nullptr) {
        return answer_;
    }
    id_ = message_->id();
    const bool in_order = message_->ep() == &ep_ && offset == message_->first() &&
                          (message_->now() != send_message::state::made || first.has_value());
    decide(first, length_p);
    // UCP sends over another of its lanes, or again from the start: fragments may go in any order,
    // direct messages may not. A receiver that has the FIN already takes no fragments.
    if (!in_order && message_->now() != send_message::state::declined && !message_->fin_is_sent()) {
        answer_ = pack_answer::fragment;
        sends_offer_ = sends_fin_ = false;
        message_->leave();
        message_ = nullptr;
    }
    return answer_;
}

size_t data_call::compose(void *destination, void *self) noexcept {
    auto &call = *static_cast<data_call *>(self);
    size_t packed = call.pack_(destination, call.arg_);
    current_ = nullptr;  // the carrier self goes on to deliver, and UCP may send what comes next
    if (CUDA_NC_LIKELY(call.answer_ == pack_answer::fragment)) {
        return packed;
    }
    call.claimed_ = packed;
    data_prefix prefix = {};
    prefix.identity = call.services_.iface.address.identity;
    auto kind = data_kind::nothing;
    size_t kept = 0;  // of UCP's message
    const sender_offer *offer = nullptr;
    if (call.sends_offer_) {
        kind = data_kind::offer;
        kept = sizeof(rndv_header) + call.first_;
        prefix.message = call.message_->id();
        prefix.length = call.message_->total();
        offer = &call.message_->offer().content();
    } else if (call.sends_fin_) {
        kind = data_kind::fin;
        kept = sizeof(rndv_header);
        prefix.message = call.message_->receiver();
        prefix.length = call.message_->total() - call.message_->first();
    }
    prefix.mark_and_kind = mark | static_cast<uint64_t>(kind);
    auto *start = static_cast<char *>(destination);
    const size_t ahead = sizeof(prefix) + (offer != nullptr ? sizeof(*offer) : 0);
    std::memmove(start + ahead, start, kept);
    std::memcpy(start, &prefix, sizeof(prefix));
    if (offer != nullptr) {
        std::memcpy(start + sizeof(prefix), offer, sizeof(*offer));
    }
    return ahead + kept;
}

ssize_t data_call::conclude(ssize_t sent) noexcept {
    services_.pending.accepted();
    if (sent < 0) {
        return sent;  // the carrier's; UCP comes back to the same bytes
    }
    // The carrier self has delivered meanwhile, and the user's callback may have closed the
    // endpoint.
    send_message *message = services_.messages.find_send(id_);
    if (message == nullptr) {
        return answer_ == pack_answer::wait ? static_cast<ssize_t>(UCS_ERR_NO_RESOURCE)
                                            : static_cast<ssize_t>(claimed_);
    }
    if (sends_offer_) {
        message->offered(first_);
    }
    if (sends_fin_) {
        message->fin_sent();
    }
    if (answer_ == pack_answer::wait) {
        services_.pending.refused(ep_, id_);
        return UCS_ERR_NO_RESOURCE;
    }
    if (answer_ == pack_answer::fin) {
        message->all_claimed();
    }
    return static_cast<ssize_t>(claimed_);
}

}  // namespace cuda_nc::uct
