#include "uct/cuda_nc/protocol/outgoing_offer.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "ucs/base/settings.hpp"
#include "ucs/layout/layout.hpp"
#include "uct/cuda_nc/iface.hpp"
#include "uct/cuda_nc/protocol/announcement.hpp"
#include "uct/cuda_nc/protocol/source.hpp"

namespace cuda_nc::uct {

// The receiver answers when its process next enters UCX. Where it does not for so long the bytes go
// into the carrier's queues meanwhile, as they do without the transport.
constexpr auto patience = std::chrono::seconds(1);

namespace {

// By what the receiver has done with others before. Longer ones it may find better piped.
bool will_be_pulled(endpoint &ep, const user_buffer &buffer) noexcept {
    constexpr uint64_t always_pulled = 256 << 10;  // bytes
    if (buffer.packed_bytes() > std::min<uint64_t>(always_pulled, config().pull_max)) {
        return false;
    }
    if (ep.offers_with_port == 0) {
        return true;
    }
    --ep.offers_with_port;
    return false;
}

}  // namespace

outgoing_offer::outgoing_offer(message_services &services, endpoint &ep, const user_buffer &buffer,
                               uint64_t id, bool describes) noexcept
    : services_(services), ep_(ep), buffer_(buffer), id_(id) {
    if (ep.by_network) {
        return;  // nothing of this machine means anything there
    }
    const int device = buffer.device();
    gpu::device *gpu = gpu::platform::instance().get_device(device);
    content_.process = services.process;
    char *base;
    if (const layout *what = buffer.laid_out(&base)) {
        content_.hash_low = what->hash().low;
        content_.hash_high = what->hash().high;
    }
    if (gpu == nullptr) {
        return;
    }
    const std::string &place = gpu->properties().bus_id;
    if (place.empty() || place.size() > sizeof(content_.gpu)) {
        return;
    }
    std::memcpy(content_.gpu, place.data(), place.size());
    content_.flags = ep.host_slots ? wire::host_slots : 0;
    const bool may_be_piped = !ep.host_slots && uses_pipes() && channel_limit(device) != 0;
    if (may_be_piped && !(describes && will_be_pulled(ep, buffer))) {
        port_ = acquire_port(device);
    }
    if (port_ == nullptr) {
        return;
    }
    content_.channels = message_channels(device);
    content_.sequence = port_->sequence;
    content_.credits = port_->words_offset;
    content_.memory = *port_->handle;
}

wire::source_descriptor outgoing_offer::source() const noexcept {
    const bool may_be_pulled =
        !ep_.by_network && uses_pipes() && buffer_.packed_bytes() <= config().pull_max;
    if (!may_be_pulled) {
        return {};
    }
    return describe_source(buffer_);
}

bool outgoing_offer::announce(uint64_t request, const void *rts, size_t length) noexcept {
    const announcement what = {id_, services_.iface.address.identity, {content_, source()}};
    char bytes[longest_announcement];
    const size_t written = write_announcement(what, bytes);
    if (!services_.control.announce(ep_, bytes, written, rts, length)) {
        return false;
    }
    early_request_ = request;  // without a deadline: the receive may be posted late
    return true;
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
