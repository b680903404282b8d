// What a sender offers, and what it makes of the receiver's answer.
#include <algorithm>
#include <cstring>

#include "ucs/base/log.hpp"
#include "ucs/base/settings.hpp"
#include "ucs/base/trace.hpp"
#include "ucs/layout/layout.hpp"
#include "uct/cuda_nc/engine/admission.hpp"
#include "uct/cuda_nc/counters.hpp"
#include "uct/cuda_nc/iface.hpp"
#include "uct/cuda_nc/protocol/sending.hpp"
#include "uct/cuda_nc/memory/source.hpp"
#include "uct/cuda_nc/engine/traffic.hpp"

namespace cuda_nc::uct {

// The receiver answers when its process next enters UCX. Where it does not for so long the bytes go
// into the carrier's queues meanwhile, as without us.
constexpr auto patience = std::chrono::seconds(1);

bool sending::by_carrier() const noexcept {
    return ep_ != nullptr && ep_->by_carrier;
}

// Without a side the offer is of slots alone.
void sending::make_offer() noexcept {
    if (by_carrier()) {
        return;  // nothing of this machine means anything there
    }
    gpu::device *gpu = gpu::platform::instance().get_device(device_);
    offer_.process = owner_.process();
    char *base;
    if (const layout *what = end_->laid_out(&base)) {
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
    if (!ep_->host_slots && owner_.uses_pipes() && channel_limit(device_) != 0) {
        side_ = take_side(device_);
    }
    if (side_ == nullptr) {
        return;
    }
    offer_.channels = message_channels(device_);
    offer_.sequence = side_->sequence;
    offer_.credits = side_->words_offset;
    offer_.memory = *side_->handle;
}

void sending::offered(uint64_t first) noexcept {
    state_ = state::offered;
    trace_mark("offer leaves", id_);
    first_ = next_ = first;
    deadline_ = clock::now() + patience;
}

wire::source_terms sending::source() const noexcept {
    const bool may_be_pulled = !by_carrier() && owner_.uses_pipes() && total_ <= config().pull_max;
    return may_be_pulled ? describe_source(*end_) : wire::source_terms{};
}

bool sending::offer_early(uint64_t request) noexcept {
    wire::control message = {};
    message.kind = wire::control_kind::early;
    message.from = id_;
    message.offset = request;
    message.length = total_;
    message.early = {offer_, source()};
    if (!owner_.send_at_once(*ep_, message)) {
        return false;
    }
    state_ = state::offered;
    deadline_ = clock::time_point::max();  // the receive may come late
    early_request_ = request;
    return true;
}

bool sending::take_unanswered() noexcept {
    bool unanswered = early_request_ != 0;
    early_request_ = 0;
    return unanswered;
}

void sending::learn_receivers(uint32_t flags) noexcept {
    if (ep_ != nullptr) {
        ep_->known_receivers = (flags & wire::known_receivers) != 0     ? receivers_known::yes
                               : (flags & wire::unknown_receivers) != 0 ? receivers_known::no
                                                                        : receivers_known::perhaps;
    }
}

void sending::take_answer(const wire::control &answer) noexcept {
    trace_mark("answer comes", id_);
    receiver_ = answer.from;
    if (take_unanswered()) {
        count(counters::all().early);
    }
    learn_receivers(answer.flags);
}

// This message goes by host memory; those to come need not.
void sending::cannot_reach() noexcept {
    if (ep_ == nullptr) {
        return;
    }
    if (ep_->by_carrier) {
        ep_->direct = !owner_.iface().gpu_memory->refuses();
    } else if (!on_host_) {
        ep_->host_slots = true;
    } else if (ep_->host_slots) {
        ep_->direct = false;
    }
}

// Whether the receiver's slots can be used.
bool sending::open_slots(const wire::control &answer) noexcept {
    constexpr uint64_t step = 4 << 10;
    num_slots_ = answer.slot;
    slot_size_ = answer.length;
    on_host_ = (answer.flags & wire::host_slots) != 0;
    if (num_slots_ < 1 || num_slots_ > ring::most_slots || slot_size_ < 1 ||
        slot_size_ > UINT64_MAX / ring::most_slots) {
        return false;
    }
    if (by_carrier()) {
        interface &iface = owner_.iface();
        const uint64_t rest = (total_ - first_ + step - 1) / step * step;
        const uint64_t most = std::min<uint64_t>(rest, iface.longest_put / step * step);
        puts_ = put_slots::open(*iface.gpu_memory, device_, answer, most);
        slot_size_ = puts_ != nullptr ? puts_->slot_size() : 0;
    } else {
        const uint64_t length = num_slots_ * slot_size_;
        ring_ = on_host_ ? reach_peer_host_memory(device_, answer.handle, answer.process,
                                                  answer.offset, length)
                         : reach_peer_memory(device_, answer.handle, answer.process, answer.offset,
                                             length, 1);
    }
    if (puts_ == nullptr && !ring_) {
        cannot_reach();
        return false;
    }
    for (unsigned i = 0; i < num_slots_; ++i) {
        slots_[i].done = owner_.take_event(device_);
        if (slots_[i].done == nullptr) {
            return false;
        }
    }
    return true;
}

void sending::declined(const wire::control &answer) noexcept {
    learn_receivers(answer.flags);
    if ((answer.flags & wire::never) != 0 && by_carrier()) {
        ep_->direct = false;
    }
    give_up();
}

bool sending::accepted(const wire::control &answer) noexcept {
    if (state_ != state::offered) {
        return false;
    }
    settle();
    take_answer(answer);
    if (by_carrier() != (answer.kind == wire::control_kind::lend) || !open_slots(answer)) {
        give_up();
        return true;
    }
    state_ = state::moving;
    progress();
    return true;
}

bool sending::accepted_pipe(const wire::control &answer) noexcept {
    if (state_ != state::offered) {
        return false;
    }
    take_answer(answer);
    const wire::pipe_terms &terms = answer.terms;
    gpu::pipe_work work;
    work.geometry = {terms.channels, terms.chunk_size, terms.depth};
    work.sequence = terms.sequence;
    bool fits = !by_carrier() && side_ != nullptr && work.geometry.valid() &&
                terms.channels <= offer_.channels && terms.sequence >= side_->sequence &&
                terms.sequence < last_sequence && terms.sequence % gpu::pipe_sequence_step == 0 &&
                terms.segment >= std::min(total_, least_segment) &&
                terms.segment <= gpu::max_pipe_length;
    if (fits) {
        constexpr size_t alignment = 16;
        ring_ = reach_peer_memory(device_, answer.handle, answer.process, answer.offset,
                                  work.geometry.ring_size(), alignment);
        flags_ = reach_peer_memory(device_, terms.flags_memory, answer.process, terms.flags,
                                   work.geometry.words_size(), alignment);
        work.ring = ring_.address;
        work.flags = flags_.address;
        work.credits = side_->words;
        fits = ring_ && flags_;
    }
    if (!fits) {
        nc_debug("a receiver's pipe cannot be used");
        if (work.credits != nullptr) {
            cannot_reach();
        }
        give_up();
        return true;
    }
    by_pipe_ = true;
    receiving_process_ = answer.process;
    state_ = state::moving;
    drive_.begin(*side_, *end_, gpu::direction::pack, work, total_, terms.segment,
                 (answer.flags & wire::memory_order) != 0);
    progress();
    return true;
}

bool sending::accepted_pull(const wire::control &answer) noexcept {
    if (state_ != state::offered) {
        return false;
    }
    settle();
    take_answer(answer);
    if (by_carrier()) {
        give_up();
        return true;
    }
    by_pull_ = true;
    state_ = state::moving;
    return true;
}

}  // namespace cuda_nc::uct
