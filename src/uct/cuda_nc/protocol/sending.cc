#include "uct/cuda_nc/protocol/sending.hpp"

#include <algorithm>
#include <utility>

#include "ucs/base/log.hpp"
#include "ucs/base/trace.hpp"
#include "uct/cuda_nc/counters.hpp"
#include "uct/cuda_nc/ep.hpp"
#include "uct/cuda_nc/engine/traffic.hpp"

namespace cuda_nc::uct {

sending::sending(traffic &owner, endpoint &ep, direct_end &end, uint64_t id) noexcept
    : owner_(owner),
      ep_(&ep),
      end_(&end),
      id_(id),
      peer_(ep.peer),
      total_(end.packed_bytes()),
      device_(end.device()),
      drive_(owner, id, id) {
    trace_begin("send", id_, total_);
    make_offer();
}

sending::~sending() {
    end_work();
    settle();
    if (puts_ != nullptr) {
        owner_.await_puts(std::move(puts_), nullptr, 0, id_);
    }
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
        owner_.await_end(side, {id_, peer_}, ep_, receiving_process_);
    }
}

void sending::end_work() noexcept {
    for (slot &one : slots_) {
        if (one.state == slot_state::packing) {
            one.done->synchronize();
            one.state = slot_state::full;
        }
    }
    under_way_ = 0;
    drive_.stop();
}

// What the network still moves goes before.
void sending::say_cancel() noexcept {
    const uint64_t receiver = std::exchange(receiver_, 0);
    if (puts_ != nullptr) {
        owner_.await_puts(std::move(puts_), ep_, receiver, id_);
    } else if (receiver != 0) {
        owner_.say_cancel(ep_, receiver, id_);
    }
}

void sending::give_up() noexcept {
    if (rest_sent_) {
        return;
    }
    count(state_ == state::moving ? counters::all().abandoned : counters::all().declined);
    early_request_ = 0;
    end_work();
    settle();
    say_cancel();
    state_ = state::declined;
    owner_.one_is_settled(id_);
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

void sending::endpoint_lost() noexcept {
    give_up();
    ep_ = nullptr;
    owner_.erase(*this);
}

void sending::rest_sent() noexcept {
    rest_sent_ = true;
    trace_mark("end leaves", id_);
    counters &all = counters::all();
    count(by_pull_   ? all.sent_by_pull
          : by_pipe_ ? all.sent_by_pipe
          : on_host_ ? all.sent_by_host_slots
          : puts_    ? all.sent_by_network
                     : all.sent_by_slots);
}

void sending::become_complete() noexcept {
    state_ = state::complete;
    owner_.one_is_settled(id_);
}

void sending::pulled() noexcept {
    if (by_pull_ && state_ == state::moving) {
        become_complete();
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

char *sending::slot_address(unsigned index) const noexcept {
    return puts_ != nullptr ? puts_->address(index) : ring_.address + index * slot_size_;
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
        if (end_->enqueue(one.offset, one.length, slot_address(i), *one.done) != UCS_OK) {
            return false;
        }
        one.state = slot_state::packing;
        ++under_way_;
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
        become_complete();
        ++happened;
    }
    return happened;
}

unsigned sending::progress() noexcept {
    if (has_deadline() && clock::now() > deadline_) {
        nc_debug("the receiver does not answer an offer; the message goes by host memory");
        give_up();
        return 1;
    }
    if (state_ != state::moving || by_pull_) {
        return 0;
    }
    return by_pipe_ ? progress_pipe() : progress_slots();
}

// UCS_OK: the receiver has been told of it.
ucs_status_t sending::progress_slot(unsigned index) noexcept {
    slot &one = slots_[index];
    ucs_status_t status = UCS_OK;
    if (one.state == slot_state::packing) {
        status = one.done->query();
        if (status == UCS_OK && puts_ != nullptr) {
            one.state = slot_state::packed;
        }
    } else if (one.state == slot_state::leaving) {
        status = puts_->query(index);
    }
    if (one.state == slot_state::packed) {
        status = puts_->start(ep_->carrier, index, one.length);
        if (status != UCS_ERR_NO_RESOURCE) {
            one.state = slot_state::leaving;
        }
    }
    if (status == UCS_OK && puts_ != nullptr) {
        status = fence_puts(*ep_);
    }
    if (status == UCS_INPROGRESS || status == UCS_ERR_NO_RESOURCE) {
        return UCS_INPROGRESS;
    }
    --under_way_;
    one.state = slot_state::full;
    if (status == UCS_OK) {
        tell_data(index);
    }
    return status;
}

unsigned sending::progress_slots() noexcept {
    unsigned happened = 0;
    bool failed = false;
    for (unsigned i = 0; i < num_slots_ && under_way_ != 0 && !failed; ++i) {
        const slot_state before = slots_[i].state;
        if (before == slot_state::empty || before == slot_state::full) {
            continue;
        }
        ucs_status_t status = progress_slot(i);
        happened += slots_[i].state != before ? 1 : 0;
        failed = status != UCS_OK && status != UCS_INPROGRESS;
    }
    if (failed || !fill_slots()) {
        nc_debug("a slot was not packed or did not leave; the message goes by host memory");
        give_up();
        return 1;
    }
    // The receiver must hear of every slot before it hears of the end.
    if (next_ == total_ && under_way_ == 0 && !owner_.has_unsent(ep_)) {
        become_complete();
        ++happened;
    }
    return happened;
}

}  // namespace cuda_nc::uct
