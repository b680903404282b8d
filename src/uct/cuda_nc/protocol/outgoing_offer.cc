#include "uct/cuda_nc/protocol/outgoing_offer.hpp"

#include <utility>

#include "ucs/base/settings.hpp"
#include "ucs/layout/layout.hpp"
#include "uct/cuda_nc/iface.hpp"
#include "uct/cuda_nc/memory/quarantine.hpp"
#include "uct/cuda_nc/protocol/announcement.hpp"
#include "uct/cuda_nc/protocol/source.hpp"

namespace cuda_nc::uct {

// The receiver answers when its process next enters UCX. Where it does not for so long the bytes go
// into the carrier's queues meanwhile, as they do without the transport.
constexpr auto patience = std::chrono::seconds(1);

outgoing_offer::outgoing_offer(message_services &services, endpoint &ep, const user_buffer &buffer,
                               uint64_t id) noexcept
    : services_(services), ep_(ep), buffer_(buffer), id_(id) {
    if (ep.by_network) {
        return;  // nothing of this machine means anything there
    }
    content_.process = services.process;
    char *base;
    if (const layout *what = buffer.laid_out(&base)) {
        content_.hash_low = what->hash().low;
        content_.hash_high = what->hash().high;
    }
    if (name_gpu(buffer.device(), &content_)) {
        content_.flags = (ep.no_lent_memory.is_on() ? wire::host_slots : 0) |
                         (ep.no_straight.is_on() ? wire::not_straight : 0);
    }
}

void outgoing_offer::bring_port() noexcept {
    const int device = buffer_.device();
    if (port_ != nullptr || content_.gpu[0] == '\0' || (content_.flags & wire::host_slots) != 0 ||
        !uses_pipes() || channel_limit(device) == 0) {
        return;
    }
    release_quarantined();  // of those who have gone: nobody else may look
    port_ = acquire_port(device);
    if (port_ == nullptr) {
        return;
    }
    content_.channels = message_channels(device);
    content_.sequence = port_->sequence;
    content_.credits = port_->words_offset;
    content_.memory = *port_->handle;
}

// Longer ones the receiver may find better piped.
constexpr uint64_t always_pulled = 128 << 10;  // bytes

uint64_t &outgoing_offer::pulled() const noexcept {
    return ep_.pulled[content_.hash_low % ep_.pulled.size()];
}

bool outgoing_offer::will_be_pulled() const noexcept {
    return buffer_.packed_bytes() <= always_pulled && content_.hash_low != 0 &&
           pulled() == content_.hash_low;
}

void outgoing_offer::learn(bool pulls) noexcept {
    if (pulls && buffer_.packed_bytes() <= always_pulled) {
        pulled() = content_.hash_low;
    } else if (!pulls && will_be_pulled()) {
        pulled() = 0;
    }
}

wire::source_descriptor outgoing_offer::source() const noexcept {
    const bool may_be_pulled =
        !ep_.by_network && uses_pipes() && buffer_.packed_bytes() <= config().pull_max;
    if (!may_be_pulled) {
        return {};
    }
    return describe_source(buffer_);
}

ucs_status_t outgoing_offer::announce(uint64_t request, const void *rts, size_t length) noexcept {
    const wire::source_descriptor from = source();
    if (from.allocation == 0 || !will_be_pulled()) {
        bring_port();
    }
    const announcement what = {id_, services_.iface.address.identity, {content_, from}};
    const ucs_status_t sent = services_.control.announce(ep_, what, rts, length);
    if (sent == UCS_OK) {
        early_request_ = request;  // without a deadline: the receive may be posted late
    }
    return sent;
}

void outgoing_offer::sent_with_data() noexcept {
    deadline_ = clock::now() + patience;
    services_.looks.look_at(id_, deadline_);
}

bool outgoing_offer::consume_unanswered() noexcept {
    return std::exchange(early_request_, 0) != 0;
}

void outgoing_offer::withdraw() noexcept {
    if (early_request_ == 0) {
        return;
    }
    wire::control message = {};
    message.kind = wire::control_kind::withdraw;
    message.from = id_;
    message.offset = std::exchange(early_request_, 0);
    services_.control.send(&ep_, message);
}

void outgoing_offer::release_port() noexcept {
    if (port_ != nullptr) {
        uct::release_port(std::exchange(port_, nullptr));
    }
}

}  // namespace cuda_nc::uct
