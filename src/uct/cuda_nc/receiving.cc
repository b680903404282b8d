#include "uct/cuda_nc/receiving.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ucs/base/log.hpp"
#include "ucs/base/trace.hpp"
#include "uct/cuda_nc/admission.hpp"
#include "uct/cuda_nc/counters.hpp"
#include "uct/cuda_nc/pipe_shape.hpp"
#include "uct/cuda_nc/quarantine.hpp"
#include "uct/cuda_nc/traffic.hpp"

namespace cuda_nc::uct {
namespace {

// Where memory is short a long message goes round in less of it, down to this many bytes.
constexpr uint64_t least_ring = 64 << 10;

}  // namespace

receiving::receiving(traffic &owner, endpoint &ep, direct_end &end, uint64_t id, uint64_t sender,
                     uint64_t total, uint64_t first) noexcept
    : owner_(owner),
      ep_(&ep),
      end_(&end),
      id_(id),
      sender_(sender),
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
        quarantine(side_, sending_process_);
    }
    side_ = nullptr;
    if (promised_ != 0) {
        end_promise(device_, std::exchange(promised_, 0));
    }
    if (memory_ && sender_is_through) {
        give_region(memory_);
    } else if (memory_) {
        quarantine(memory_, sending_process_);
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

bool receiving::accept_slots(const wire::pipe_offer &offer, uint32_t flags) noexcept {
    const bool same_gpu = is_on(gpu::platform::instance().get_device(device_), offer);
    // Launches reach no other GPU's memory of their own process.
    const bool on_host =
        (offer.flags & wire::host_slots) != 0 || (!same_gpu && is_own(offer.process));
    ring slots = take_ring(device_, rest(), same_gpu, on_host);
    if (!slots) {
        return false;
    }
    memory_ = slots.memory;
    slot_size_ = slots.slot_size;
    num_slots_ = slots.num_slots;
    on_host_ = slots.on_host;
    for (unsigned i = 0; i < num_slots_; ++i) {
        slots_[i].done = owner_.take_event(device_);
        if (slots_[i].done == nullptr) {
            release(true);
            return false;
        }
    }
    wire::control answer = {};
    answer.kind = wire::control_kind::accept;
    answer.slot = static_cast<uint16_t>(num_slots_);
    answer.flags = flags | (on_host_ ? wire::host_slots : 0);
    answer.to = sender_;
    answer.from = id_;
    answer.offset = memory_.offset;
    answer.length = slot_size_;
    answer.process = owner_.process();
    answer.handle = memory_.handle();
    owner_.send_control(ep_, answer);
    trace_mark(on_host_ ? "host slots lent" : "slots lent", sender_);
    trace_mark("answer leaves", sender_);
    return true;
}

// Each message leaves half of the lanes that it finds to those that come before its end. Among many
// it gets so few that about 16 of a megabyte are under way at a time: a launch and the flags take
// longer than the bytes.
unsigned receiving::share_of_lanes(uint64_t bytes, unsigned most) const noexcept {
    const unsigned limit = lane_limit(device_), others = lanes_promised(device_);
    unsigned least = std::max(1u, std::min(16u, limit / 8));
    if (bytes > (uint64_t{2} << 20)) {
        least *= 2;  // it would be the last to end
    }
    return std::min(most, std::max(limit > others ? (limit - others) / 2 : 0, least));
}

// When a sender has filled the ring it is too late to find that there is no stream.
bool receiving::take_pipe_side() noexcept {
    if (has_stream(device_)) {
        side_ = take_side(device_);
    }
    return side_ != nullptr;
}

void receiving::begin_drive(const gpu::pipe_work &work, uint64_t segment) noexcept {
    by_pipe_ = true;
    promised_ = work.geometry.lanes;
    promise_lanes(device_, promised_);
    drive_.begin(*side_, *end_, gpu::direction::unpack, work, total_, segment);
}

bool receiving::accept_pipe(const wire::pipe_offer &offer, uint32_t flags) noexcept {
    sending_process_ = offer.process;
    gpu::device *gpu = gpu::platform::instance().get_device(device_);
    unsigned lanes = std::min(offer.lanes, message_lanes(device_));
    if (gpu == nullptr || !owner_.uses_pipes() || lanes == 0 || offer.sequence == 0 ||
        offer.sequence >= last_sequence || offer.sequence % gpu::pipe_sequence_step != 0) {
        return false;
    }
    if (is_on(gpu, offer)) {
        return false;  // one GPU has both kernels: no pair of them need fit on it
    }
    gpu::pipe_work work;
    constexpr size_t alignment = 16;
    credits_ = reach_peer_memory(device_, offer.memory, offer.process, offer.credits,
                                 uint64_t{lanes} * gpu::pipe_word_stride, alignment);
    if (!credits_) {
        return false;
    }
    work.credits = credits_.address;
    if (!take_pipe_side()) {
        return false;
    }
    uint64_t segment = std::min<uint64_t>(total_, owner_.longest_segment());
    lanes = share_of_lanes(segment, lanes);
    for (uint64_t room = UINT64_MAX; !memory_; room = work.geometry.ring_size() / 2) {
        work.geometry = choose_geometry(segment, lanes, room);
        if (work.geometry.lanes == 0 || (room != UINT64_MAX && room < least_ring)) {
            release(true);
            return false;
        }
        memory_ = take_region(device_, work.geometry.ring_size());
    }
    work.sequence = std::max(side_->sequence, offer.sequence);
    work.ring = memory_.address;
    work.flags = side_->words;

    wire::control answer = {};
    answer.kind = wire::control_kind::pipe;
    answer.flags = flags;
    answer.to = sender_;
    answer.from = id_;
    answer.offset = memory_.offset;
    answer.process = owner_.process();
    answer.handle = memory_.handle();
    wire::pipe_terms &terms = answer.terms;
    terms.lanes = work.geometry.lanes;
    terms.chunk_size = work.geometry.chunk_size;
    terms.depth = work.geometry.depth;
    terms.sequence = work.sequence;
    terms.segment = segment;
    terms.flags = side_->words_offset;
    terms.flags_memory = *side_->handle;
    owner_.send_control(ep_, answer);
    trace_mark("answer leaves", sender_);

    begin_drive(work, segment);
    // While there is much room a kernel may wait for its peer on the GPU.
    if (lanes_promised(device_) > lane_limit(device_) / 2) {
        drive_.await_call();
    } else {
        drive_.try_launch();
    }
    return true;
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
        say(wire::control_kind::ended, 0);
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
    if (has_rest_ || length != rest() || header.offset != first_) {
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
    // The sender's GPU wrote its last byte before it said so.
    release(true);
    unpack_call call;
    call.rest = true;
    call.whole = by_pipe_;
    call.end = end_;
    call.status = failed_;
    if (failed_ == UCS_OK) {
        counters &all = counters::all();
        count(pulls_     ? all.received_by_pull
              : by_pipe_ ? all.received_by_pipe
              : on_host_ ? all.received_by_host_slots
                         : all.received_by_slots);
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
