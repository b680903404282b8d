#include "uct/cuda_nc/sending.hpp"

#include <algorithm>

#include "ucs/base/log.hpp"
#include "uct/cuda_nc/address.hpp"
#include "uct/cuda_nc/ep.hpp"
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
      device_(end.device()) {}

sending::~sending() {
    end_work();
    for (slot &one : slots_) {
        if (one.done != nullptr) {
            owner_.give_event(device_, std::move(one.done));
        }
    }
    if (end_ != nullptr) {
        end_->message = nullptr;
    }
}

void sending::offered(uint64_t first) noexcept {
    state_ = state::offered;
    first_ = next_ = first;
    deadline_ = std::chrono::steady_clock::now() + patience;
}

void sending::end_work() noexcept {
    for (slot &one : slots_) {
        if (one.state == slot_state::packing) {
            one.done->synchronize();
            one.state = slot_state::full;
        }
    }
    packing_ = 0;
}

void sending::say_cancel() noexcept {
    if (receiver_ != 0) {
        wire::control message = {};
        message.kind = wire::control_kind::cancel;
        message.to = receiver_;
        owner_.send_control(ep_, message);
        receiver_ = 0;
    }
}

void sending::give_up() noexcept {
    end_work();
    say_cancel();
    state_ = state::declined;
}

void sending::leave() noexcept {
    end_work();
    if (!rest_sent_) {
        say_cancel();
    }
    owner_.erase(*this);
}

void sending::accepted(const wire::control &answer) noexcept {
    if (state_ != state::offered) {
        return;
    }
    receiver_ = answer.from;
    if (ep_ != nullptr) {
        ep_->known_receivers = (answer.flags & wire::known_receivers) != 0;
    }
    num_slots_ = answer.slot;
    slot_size_ = answer.length;
    gpu::memory *memory = open_peer_memory(device_, answer.handle);
    bool fits = memory != nullptr && num_slots_ >= 1 && num_slots_ <= ring::num_slots &&
                slot_size_ >= 1 && answer.offset <= memory->size() &&
                slot_size_ <= (memory->size() - answer.offset) / num_slots_;
    for (unsigned i = 0; i < num_slots_ && fits; ++i) {
        slots_[i].done = owner_.take_event(device_);
        fits = slots_[i].done != nullptr;
    }
    if (!fits) {
        if (memory == nullptr && ep_ != nullptr) {
            ep_->direct = false;
        }
        give_up();
        return;
    }
    ring_ = memory->address() + answer.offset;
    state_ = state::moving;
    progress();
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
        if (end_->enqueue(one.offset, one.length, ring_ + i * slot_size_, *one.done) != UCS_OK) {
            return false;
        }
        one.state = slot_state::packing;
        ++packing_;
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

unsigned sending::progress() noexcept {
    if (state_ == state::offered && std::chrono::steady_clock::now() > deadline_) {
        nc_debug("the receiver does not answer an offer; the message goes by host memory");
        state_ = state::declined;
        return 1;
    }
    if (state_ != state::moving) {
        return 0;
    }
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
        ++happened;
    }
    return happened;
}

}  // namespace cuda_nc::uct
