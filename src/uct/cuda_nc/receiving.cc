#include "uct/cuda_nc/receiving.hpp"

#include <algorithm>

#include "ucs/base/log.hpp"
#include "uct/cuda_nc/traffic.hpp"

namespace cuda_nc::uct {
namespace {

// A quarter of the message, so that packing and unpacking overlap; not below what a launch is
// worth.
uint64_t choose_slot_size(uint64_t bytes, uint64_t largest) noexcept {
    constexpr uint64_t least = 128 << 10, step = 4 << 10;
    uint64_t quarter = (bytes / ring::num_slots + step - 1) / step * step;
    return std::min(std::max(quarter, least), largest);
}

}  // namespace

receiving::receiving(traffic &owner, endpoint &ep, direct_end &end, ring &slots, uint64_t id,
                     uint64_t sender, uint64_t total, uint64_t first) noexcept
    : owner_(owner),
      ep_(&ep),
      end_(&end),
      ring_(&slots),
      id_(id),
      sender_(sender),
      total_(total),
      first_(first),
      device_(end.device()),
      slot_size_(choose_slot_size(total_ - first, slots.slot_size)) {
    end.message = this;
}

receiving::~receiving() {
    end_work();
    for (slot &one : slots_) {
        if (one.done != nullptr) {
            owner_.give_event(device_, std::move(one.done));
        }
    }
    if (end_ != nullptr) {
        end_->message = nullptr;
    }
    if (ring_ != nullptr) {
        lose_ring(ring_);
    }
}

void receiving::say(wire::control_kind kind, unsigned number) noexcept {
    wire::control message = {};
    message.kind = kind;
    message.slot = static_cast<uint16_t>(number);
    message.to = sender_;
    message.from = id_;
    owner_.send_control(ep_, message);
}

bool receiving::accept(uint32_t flags) noexcept {
    for (slot &one : slots_) {
        one.done = owner_.take_event(device_);
        if (one.done == nullptr) {
            give_ring(ring_);
            ring_ = nullptr;
            return false;
        }
    }
    wire::control message = {};
    message.kind = wire::control_kind::accept;
    message.slot = ring::num_slots;
    message.flags = flags;
    message.to = sender_;
    message.from = id_;
    message.offset = ring_->offset;
    message.length = slot_size_;
    message.handle = ring_->handle;
    owner_.send_control(ep_, message);
    return true;
}

void receiving::take_data(const wire::control &message) noexcept {
    bool fits = message.slot < ring::num_slots && !slots_[message.slot].unpacking &&
                message.length >= 1 && message.length <= slot_size_ && message.offset >= first_ &&
                message.offset <= total_ && message.length <= total_ - message.offset &&
                message.length <= rest() - announced_ && !has_rest_;
    if (end_ == nullptr) {
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
        failed_ != UCS_OK
            ? failed_
            : end_->enqueue(message.offset, message.length,
                            ring_->memory->address() + message.slot * slot_size_, *one.done);
    if (status != UCS_OK) {
        finish_slot(message.slot, status);
        return;
    }
    one.unpacking = true;
    ++unpacking_;
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
}

void receiving::leave() noexcept {
    end_work();
    end_->message = nullptr;
    end_ = nullptr;
    if (ep_ == nullptr) {
        owner_.erase(*this);
    } else {
        say(wire::control_kind::stop, 0);
    }
}

void receiving::cancelled() noexcept {
    end_work();
    give_ring(ring_);
    ring_ = nullptr;
    owner_.erase(*this);
}

void receiving::endpoint_lost() noexcept {
    ep_ = nullptr;
    if (end_ == nullptr) {
        owner_.erase(*this);
    }
}

void receiving::take_rest(const wire::rndv_header &header, uint64_t length) noexcept {
    if (end_ == nullptr) {
        cancelled();
        return;
    }
    if (has_rest_ || length != rest() || header.offset != first_) {
        nc_error("a sender ends a message otherwise than it began");
        return;
    }
    if (announced_ != rest()) {
        failed_ = UCS_ERR_IO_ERROR;
        end_work();
        announced_ = unpacked_ = rest();
    }
    header_ = header;
    has_rest_ = true;
    progress();
}

void receiving::deliver() noexcept {
    // The sender's GPU wrote its last byte before it said so.
    give_ring(ring_);
    ring_ = nullptr;
    unpack_call call;
    call.rest = true;
    call.end = end_;
    call.status = failed_;
    end_->message = nullptr;
    end_ = nullptr;
    wire::rndv_header header = header_;
    uint64_t length = sizeof(header) + rest();
    traffic &owner = owner_;
    owner.erase(*this);
    owner.deliver(&header, length, call);
}

unsigned receiving::progress() noexcept {
    unsigned happened = 0;
    for (unsigned i = 0; i < ring::num_slots && unpacking_ != 0; ++i) {
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

}  // namespace cuda_nc::uct
