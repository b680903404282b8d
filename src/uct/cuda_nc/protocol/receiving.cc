#include "uct/cuda_nc/protocol/receiving.hpp"

#include <algorithm>
#include <utility>

#include "ucs/base/log.hpp"
#include "ucs/base/trace.hpp"
#include "uct/cuda_nc/engine/admission.hpp"
#include "uct/cuda_nc/counters.hpp"
#include "uct/cuda_nc/ep.hpp"
#include "uct/cuda_nc/memory/quarantine.hpp"
#include "uct/cuda_nc/engine/traffic.hpp"

namespace cuda_nc::uct {

receiving::receiving(traffic &owner, endpoint &ep, direct_end &end, uint64_t id, uint64_t sender,
                     uint64_t request, uint64_t total, uint64_t first) noexcept
    : owner_(owner),
      ep_(&ep),
      end_(&end),
      id_(id),
      sender_(sender),
      peer_(ep.peer),
      request_(request),
      total_(total),
      first_(first),
      device_(end.device()),
      drive_(owner, id, sender) {
    trace_begin("receive", sender_, total_);
    end.message = this;
}

receiving::~receiving() {
    end_work();
    release(false);
    trace_end("receive", sender_);
    for (slot &one : slots_) {
        if (one.done != nullptr) {
            owner_.give_event(device_, std::move(one.done));
        }
    }
    if (end_ != nullptr) {
        end_->message = nullptr;
    }
}

// What the sender may still write to waits for its end.
void receiving::release(bool sender_is_through) noexcept {
    if (side_ != nullptr && drive_.is_broken()) {
        retire_side(side_);
    } else if (side_ != nullptr && (sender_is_through || pulls_)) {
        give_side(side_);
    } else if (side_ != nullptr) {
        quarantine(side_, sending_process_, {id_, peer_});
    }
    side_ = nullptr;
    if (promised_ != 0) {
        end_promise(device_, std::exchange(promised_, 0));
    }
    if (std::exchange(by_copy_, false)) {
        end_copy(device_);
    }
    if (memory_ && sender_is_through) {
        give_region(memory_);
    } else if (memory_ && by_carrier_) {
        owner_.keep_until_closed(memory_);
    } else if (memory_) {
        quarantine(memory_, sending_process_, {id_, peer_});
    }
    memory_ = {};
}

void receiving::say(wire::control_kind kind, uint64_t number) noexcept {
    wire::control message = {};
    message.kind = kind;
    message.to = sender_;
    message.from = id_;
    if (kind == wire::control_kind::awake) {
        message.offset = number;
    } else {
        message.slot = static_cast<uint16_t>(number);
    }
    owner_.send_control(ep_, message);
}

void receiving::called(uint64_t segment) noexcept {
    if (by_pipe_ && !stopped_ && end_ != nullptr) {
        drive_.call(segment);
        progress();
    }
}

void receiving::take_data(const wire::control &message) noexcept {
    bool fits = message.slot < num_slots_ && !slots_[message.slot].unpacking &&
                message.length >= 1 && message.length <= slot_size_ && message.offset >= first_ &&
                message.offset <= total_ && message.length <= total_ - message.offset &&
                message.length <= rest() - announced_ && !has_rest_;
    if (end_ == nullptr || by_pipe_) {
        return;
    }
    if (!fits) {
        if (failed_ == UCS_OK) {
            nc_error("a sender describes bytes that its message does not have");
        }
        failed_ = UCS_ERR_IO_ERROR;
        return;
    }
    slot &one = slots_[message.slot];
    announced_ += message.length;
    one.length = message.length;
    ucs_status_t status =
        failed_ != UCS_OK ? failed_
                          : end_->enqueue(message.offset, message.length,
                                          memory_.address + message.slot * slot_size_, *one.done);
    if (status != UCS_OK) {
        finish_slot(message.slot, status);
        return;
    }
    one.unpacking = true;
    ++unpacking_;
    owner_.one_is_polled();
}

void receiving::finish_slot(unsigned index, ucs_status_t status) noexcept {
    slot &one = slots_[index];
    if (one.unpacking) {
        one.unpacking = false;
        --unpacking_;
    }
    unpacked_ += one.length;
    if (status != UCS_OK && failed_ == UCS_OK) {
        failed_ = status;
    }
    if (announced_ < rest()) {
        say(wire::control_kind::credit, index);
    }
}

void receiving::end_work() noexcept {
    for (slot &one : slots_) {
        if (one.unpacking) {
            one.done->synchronize();
            one.unpacking = false;
        }
    }
    unpacking_ = 0;
    drive_.stop();
    source_ = {};  // nobody reads there
}

void receiving::leave() noexcept {
    end_work();
    end_->message = nullptr;
    end_ = nullptr;
    if (ep_ == nullptr) {
        owner_.erase(*this);
    } else if (!stopped_) {
        stopped_ = true;
        say(wire::control_kind::stop, 0);
    }
}

void receiving::cancelled() noexcept {
    end_work();
    release(true);
    if (by_pipe_ && !pulls_) {
        owner_.say_ended(peer_, sender_);
    }
    owner_.erase(*this);
}

void receiving::endpoint_lost() noexcept {
    if (pulls_ && is_answered_ && !is_told_ && !stopped_) {  // the sender waits for nothing else
        end_work();
        stopped_ = true;
        say(wire::control_kind::stop, 0);
    }
    ep_ = nullptr;
    if (end_ == nullptr) {
        owner_.erase(*this);
    }
}

void receiving::take_rest(const wire::rndv_header &header, uint64_t length) noexcept {
    if (end_ == nullptr) {
        end_work();
        release(true);
        owner_.erase(*this);
        return;
    }
    if (has_rest_ || length != rest() || header.offset != first_ || header.request != request_) {
        nc_error("a sender ends a message otherwise than it began");
        return;
    }
    if (!by_pipe_ && announced_ != rest()) {
        failed_ = UCS_ERR_IO_ERROR;
        end_work();
        announced_ = unpacked_ = rest();
    }
    header_ = header;
    has_rest_ = true;
    trace_mark("end comes", sender_);
    if (by_pipe_ && !pulls_) {
        drive_.call(drive_.segment());  // all is there
    }
    progress();
}

void receiving::deliver() noexcept {
    const bool by_copy = by_copy_;
    // The sender's GPU wrote its last byte before it said so.
    release(true);
    unpack_call call;
    call.rest = true;
    call.whole = by_pipe_;
    call.end = end_;
    call.status = failed_;
    if (failed_ == UCS_OK) {
        counters &all = counters::all();
        count(pulls_        ? all.received_by_pull
              : by_pipe_    ? all.received_by_pipe
              : on_host_    ? all.received_by_host_slots
              : by_carrier_ ? all.received_by_network
                            : all.received_by_slots);
        if (by_copy) {
            count(all.received_by_copy);
        }
    }
    end_->message = nullptr;
    end_ = nullptr;
    wire::rndv_header header = header_;
    uint64_t length = sizeof(header) + rest();
    traffic &owner = owner_;
    owner.erase(*this);
    owner.deliver(&header, length, call);
}

unsigned receiving::progress_slots() noexcept {
    unsigned happened = 0;
    for (unsigned i = 0; i < num_slots_ && unpacking_ != 0; ++i) {
        if (slots_[i].unpacking) {
            ucs_status_t status = slots_[i].done->query();
            if (status != UCS_INPROGRESS) {
                finish_slot(i, status);
                ++happened;
            }
        }
    }
    if (has_rest_ && unpacking_ == 0 && unpacked_ == rest()) {
        deliver();
        ++happened;
    }
    return happened;
}

unsigned receiving::progress_pipe() noexcept {
    unsigned happened = drive_.progress();
    if (drive_.take_news() && !pulls_) {
        say(wire::control_kind::awake, drive_.segment());
    }
    const bool failed = drive_.now() == pipe_drive::state::failed;
    const bool complete = drive_.now() == pipe_drive::state::complete;
    if (pulls_ && complete && is_answered_ && !is_told_) {
        is_told_ = true;
        say(wire::control_kind::pulled, 0);
    }
    // A sender that is pulled from has sent its end ahead, and can still bring the bytes.
    const bool is_heard = !pulls_ || !owner_.has_unsent(ep_);  // the user may close it now
    if (has_rest_ && ((complete && is_heard) || (failed && !pulls_))) {
        failed_ = failed ? UCS_ERR_IO_ERROR : UCS_OK;
        deliver();
        return happened + 1;
    }
    if (failed && !stopped_ && (!pulls_ || is_answered_)) {
        // The sender still has all bytes, and brings them by host memory.
        nc_debug("a pipe's unpack kernel failed");
        count(counters::all().abandoned);
        stopped_ = true;
        say(wire::control_kind::stop, 0);
        ++happened;
    }
    return happened;
}

unsigned receiving::progress() noexcept {
    if (end_ == nullptr) {
        return 0;
    }
    return by_pipe_ ? progress_pipe() : progress_slots();
}

}  // namespace cuda_nc::uct
