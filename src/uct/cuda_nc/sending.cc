#include "uct/cuda_nc/sending.hpp"

#include <algorithm>
#include <cstring>

#include "ucs/base/log.hpp"
#include "ucs/base/settings.hpp"
#include "ucs/base/trace.hpp"
#include "uct/cuda_nc/address.hpp"
#include "uct/cuda_nc/admission.hpp"
#include "uct/cuda_nc/counters.hpp"
#include "uct/cuda_nc/ep.hpp"
#include "uct/cuda_nc/quarantine.hpp"
#include "uct/cuda_nc/source.hpp"
#include "uct/cuda_nc/traffic.hpp"

namespace cuda_nc::uct {

// The receiver answers when its process next enters UCX. Where it does not for so long the bytes go
// into the carrier's queues meanwhile, as without us.
constexpr auto patience = std::chrono::seconds(1);

sending::sending(traffic &owner, endpoint &ep, direct_end &end, uint64_t id) noexcept
    : owner_(owner),
      ep_(&ep),
      end_(&end),
      id_(id),
      total_(end.packed_bytes()),
      device_(end.device()),
      drive_(owner, id, id) {
    trace_begin("send", id_, total_);
    make_offer();
}

sending::~sending() {
    end_work();
    settle();
    trace_end("send", id_);
    for (slot &one : slots_) {
        if (one.done != nullptr) {
            owner_.give_event(device_, std::move(one.done));
        }
    }
    if (end_ != nullptr) {
        end_->message = nullptr;
    }
}

// Without a side the offer is of slots alone.
void sending::make_offer() noexcept {
    gpu::device *gpu = gpu::platform::instance().get_device(device_);
    offer_.process = owner_.process();
    if (gpu == nullptr) {
        return;
    }
    const std::string &place = gpu->properties().bus_id;
    if (place.empty() || place.size() > sizeof(offer_.gpu)) {
        return;
    }
    std::memcpy(offer_.gpu, place.data(), place.size());
    offer_.flags = ep_->host_slots ? wire::host_slots : 0;
    if (!ep_->host_slots && owner_.uses_pipes() && lane_limit(device_) != 0) {
        side_ = take_side(device_);
    }
    if (side_ == nullptr) {
        return;
    }
    offer_.lanes = message_lanes(device_);
    offer_.sequence = side_->sequence;
    offer_.credits = side_->words_offset;
    offer_.memory = *side_->handle;
}

void sending::offered(uint64_t first) noexcept {
    state_ = state::offered;
    trace_mark("offer leaves", id_);
    first_ = next_ = first;
    deadline_ = std::chrono::steady_clock::now() + patience;
}

void sending::offer_early(uint64_t request) noexcept {
    state_ = state::offered;
    deadline_ = std::chrono::steady_clock::time_point::max();  // the receive may come late
    early_request_ = request;
    wire::control message = {};
    message.kind = wire::control_kind::early;
    message.from = id_;
    message.offset = request;
    message.length = total_;
    message.early = {};
    message.early.offer = offer_;
    if (owner_.uses_pipes() && total_ <= config().pull_max) {
        message.early.source = describe_source(*end_);
    }
    owner_.send_control(ep_, message);
}

bool sending::take_unanswered() noexcept {
    bool unanswered = early_request_ != 0;
    early_request_ = 0;
    return unanswered;
}

// The side goes back; where the receiver's kernel may still return credit, not before it has said
// that it does not, or is gone.
void sending::settle() noexcept {
    pipe_side *side = side_;
    side_ = nullptr;
    if (side == nullptr) {
        return;
    }
    if (drive_.is_broken()) {
        retire_side(side);
    } else if (!by_pipe_ || drive_.now() == pipe_drive::state::complete) {
        give_side(side);
    } else {
        owner_.await_end(side, id_, ep_, receiving_process_);
    }
}

void sending::end_work() noexcept {
    for (slot &one : slots_) {
        if (one.state == slot_state::packing) {
            one.done->synchronize();
            one.state = slot_state::full;
        }
    }
    packing_ = 0;
    drive_.stop();
}

void sending::say_cancel() noexcept {
    if (receiver_ != 0) {
        owner_.say_cancel(ep_, receiver_, id_);
        receiver_ = 0;
    }
}

void sending::give_up() noexcept {
    if (rest_sent_) {
        return;
    }
    count(state_ == state::moving ? counters::all().abandoned : counters::all().declined);
    offers_are_taken.store(false, std::memory_order_relaxed);
    early_request_ = 0;
    end_work();
    settle();
    say_cancel();
    state_ = state::declined;
    owner_.one_is_settled();
}

void sending::leave() noexcept {
    end_work();
    settle();
    if (!rest_sent_) {
        say_cancel();
    }
    if (early_request_ != 0) {
        wire::control message = {};
        message.kind = wire::control_kind::withdraw;
        message.from = id_;
        message.offset = early_request_;
        owner_.send_control(ep_, message);
    }
    owner_.erase(*this);
}

void sending::rest_sent() noexcept {
    rest_sent_ = true;
    trace_mark("end leaves", id_);
    counters &all = counters::all();
    count(by_pull_   ? all.sent_by_pull
          : by_pipe_ ? all.sent_by_pipe
          : on_host_ ? all.sent_by_host_slots
                     : all.sent_by_slots);
}

void sending::take_answer(const wire::control &answer) noexcept {
    trace_mark("answer comes", id_);
    receiver_ = answer.from;
    if (take_unanswered()) {
        count(counters::all().early);
    }
    offers_are_taken.store(true, std::memory_order_relaxed);
    if (ep_ != nullptr) {
        ep_->known_receivers = (answer.flags & wire::known_receivers) != 0;
    }
}

// This message goes by host memory; those to come need not.
void sending::cannot_reach() noexcept {
    if (ep_ == nullptr) {
        return;
    }
    if (!on_host_) {
        ep_->host_slots = true;
    } else if (ep_->host_slots) {
        ep_->direct = false;
    }
}

bool sending::accepted(const wire::control &answer) noexcept {
    if (state_ != state::offered) {
        return false;
    }
    settle();
    take_answer(answer);
    num_slots_ = answer.slot;
    slot_size_ = answer.length;
    bool fits = num_slots_ >= 1 && num_slots_ <= ring::most_slots && slot_size_ >= 1 &&
                slot_size_ <= UINT64_MAX / ring::most_slots;
    on_host_ = (answer.flags & wire::host_slots) != 0;
    if (fits) {
        const uint64_t length = num_slots_ * slot_size_;
        ring_ = on_host_ ? reach_peer_host_memory(device_, answer.handle, answer.process,
                                                  answer.offset, length)
                         : reach_peer_memory(device_, answer.handle, answer.process, answer.offset,
                                             length, 1);
        fits = static_cast<bool>(ring_);
    }
    for (unsigned i = 0; i < num_slots_ && fits; ++i) {
        slots_[i].done = owner_.take_event(device_);
        fits = slots_[i].done != nullptr;
    }
    if (!fits) {
        if (!ring_) {
            cannot_reach();
        }
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
    work.geometry = {terms.lanes, terms.chunk_size, terms.depth};
    work.sequence = terms.sequence;
    bool fits = side_ != nullptr && work.geometry.valid() && terms.lanes <= offer_.lanes &&
                terms.sequence >= side_->sequence && terms.sequence < last_sequence &&
                terms.sequence % gpu::pipe_sequence_step == 0 &&
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
    drive_.begin(*side_, *end_, gpu::direction::pack, work, total_, terms.segment);
    progress();
    return true;
}

bool sending::accepted_pull(const wire::control &answer) noexcept {
    if (state_ != state::offered) {
        return false;
    }
    settle();
    take_answer(answer);
    by_pull_ = true;
    state_ = state::moving;
    return true;
}

void sending::pulled() noexcept {
    if (by_pull_ && state_ == state::moving) {
        state_ = state::complete;
        owner_.one_is_settled();
    }
}

void sending::called(uint64_t segment) noexcept {
    if (by_pipe_) {
        drive_.call(segment);
        progress();
    }
}

void sending::credited(unsigned index) noexcept {
    if (state_ == state::moving && index < num_slots_ && slots_[index].state == slot_state::full) {
        slots_[index].state = slot_state::empty;
        progress();
    }
}

// False: a launch failed.
bool sending::fill_slots() noexcept {
    for (unsigned i = 0; i < num_slots_ && next_ < total_; ++i) {
        slot &one = slots_[i];
        if (one.state != slot_state::empty) {
            continue;
        }
        one.offset = next_;
        one.length = std::min(slot_size_, total_ - next_);
        if (end_->enqueue(one.offset, one.length, ring_.address + i * slot_size_, *one.done) !=
            UCS_OK) {
            return false;
        }
        one.state = slot_state::packing;
        ++packing_;
        owner_.one_is_polled();
        next_ += one.length;
    }
    return true;
}

void sending::tell_data(unsigned index) noexcept {
    wire::control message = {};
    message.kind = wire::control_kind::data;
    message.slot = static_cast<uint16_t>(index);
    message.to = receiver_;
    message.offset = slots_[index].offset;
    message.length = slots_[index].length;
    owner_.send_control(ep_, message);
}

unsigned sending::progress_pipe() noexcept {
    unsigned happened = drive_.progress();
    if (drive_.take_news()) {
        wire::control message = {};
        message.kind = wire::control_kind::awake;
        message.to = receiver_;
        message.from = id_;
        message.offset = drive_.segment();
        owner_.send_control(ep_, message);
    }
    if (drive_.now() == pipe_drive::state::failed) {
        nc_debug("a pipe's pack kernel failed; the message goes by host memory");
        give_up();
        return happened + 1;
    }
    if (drive_.now() == pipe_drive::state::complete && !owner_.has_unsent(ep_)) {
        state_ = state::complete;
        owner_.one_is_settled();
        ++happened;
    }
    return happened;
}

unsigned sending::progress() noexcept {
    if (state_ == state::offered && std::chrono::steady_clock::now() > deadline_) {
        nc_debug("the receiver does not answer an offer; the message goes by host memory");
        give_up();
        return 1;
    }
    if (state_ != state::moving || by_pull_) {
        return 0;
    }
    return by_pipe_ ? progress_pipe() : progress_slots();
}

unsigned sending::progress_slots() noexcept {
    unsigned happened = 0;
    bool failed = false;
    for (unsigned i = 0; i < num_slots_ && !failed; ++i) {
        slot &one = slots_[i];
        if (one.state != slot_state::packing) {
            continue;
        }
        ucs_status_t status = one.done->query();
        if (status == UCS_INPROGRESS) {
            continue;
        }
        --packing_;
        one.state = slot_state::full;
        ++happened;
        failed = status != UCS_OK;
        if (!failed) {
            tell_data(i);
        }
    }
    if (failed || !fill_slots()) {
        nc_debug("a pack kernel failed; the message goes by host memory");
        give_up();
        return 1;
    }
    // The receiver must hear of every slot before it hears of the end.
    if (next_ == total_ && packing_ == 0 && !owner_.has_unsent(ep_)) {
        state_ = state::complete;
        owner_.one_is_settled();
        ++happened;
    }
    return happened;
}

}  // namespace cuda_nc::uct
