#include "uct/cuda_nc/protocol/route_slots.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "ucs/base/log.hpp"
#include "ucs/base/trace.hpp"
#include "uct/cuda_nc/counters.hpp"
#include "uct/cuda_nc/protocol/source.hpp"

namespace cuda_nc::uct {

// ---- sender

bool slot_sender::has_slots(const wire::control &answer) noexcept {
    return answer.slot >= 1 && answer.slot <= ring::most_slots && answer.length >= 1 &&
           answer.length <= UINT64_MAX / ring::most_slots;
}

std::unique_ptr<send_route> slot_sender::open(const send_context &context,
                                              const wire::control &answer,
                                              bool *unreachable_p) noexcept {
    *unreachable_p = false;
    if (!has_slots(answer)) {
        return nullptr;
    }
    const bool on_host = (answer.flags & wire::host_slots) != 0;
    const uint64_t length = answer.slot * answer.length;
    peer_memory memory = on_host ? reach_peer_host_memory(context.device, answer.handle,
                                                          answer.process, answer.offset, length)
                                 : reach_peer_memory(context.device, answer.handle, answer.process,
                                                     answer.offset, length, 1);
    if (!memory) {
        *unreachable_p = true;
        return nullptr;
    }
    std::unique_ptr<slot_sender> made(new (std::nothrow) slot_sender(context, on_host));
    if (made == nullptr || !made->begin(answer.slot, answer.length)) {
        return nullptr;
    }
    made->memory_ = std::move(memory);
    return made;
}

bool slot_sender::begin(unsigned number, uint64_t size) noexcept {
    num_slots_ = number;
    slot_size_ = size;
    return std::all_of(slots_, slots_ + number, [this](slot &one) {
        one.done = message_.services.events.acquire(message_.device);
        return one.done != nullptr;
    });
}

slot_sender::~slot_sender() {
    slot_sender::stop();
    for (slot &one : slots_) {
        if (one.done != nullptr) {
            message_.services.events.release(message_.device, std::move(one.done));
        }
    }
}

// False: a launch failed.
bool slot_sender::fill_slots() noexcept {
    for (unsigned i = 0; i < num_slots_ && next_ < message_.total; ++i) {
        slot &one = slots_[i];
        if (one.state != slot_state::empty) {
            continue;
        }
        one.offset = next_;
        one.length = std::min(slot_size_, message_.total - next_);
        if (message_.buffer.enqueue(one.offset, one.length, slot_address(i), *one.done) != UCS_OK) {
            return false;
        }
        one.state = slot_state::packing;
        ++under_way_;
        message_.services.looks.poll(message_.id);
        next_ += one.length;
    }
    return true;
}

void slot_sender::tell_full(const slot &one, unsigned index) noexcept {
    wire::control message = {};
    message.kind = wire::control_kind::slot_full;
    message.slot = static_cast<uint16_t>(index);
    message.to = message_.receiver;
    message.from = message_.id;
    message.offset = one.offset;
    message.length = one.length;
    message_.services.control.send(&message_.ep, message);
}

// UCS_OK: the receiver has been told of the slot. UCS_INPROGRESS, or an error.
ucs_status_t slot_sender::progress_slot(slot &one, unsigned index) noexcept {
    ucs_status_t status = UCS_OK;
    if (one.state == slot_state::packing) {
        status = one.done->query();
        one.state = status == UCS_OK ? slot_state::packed : one.state;
    }
    if (one.state == slot_state::packed) {
        status = deliver_slot(index, one.length);
    }
    if (status == UCS_INPROGRESS) {
        return status;
    }
    --under_way_;
    one.state = slot_state::full;
    if (status == UCS_OK) {
        tell_full(one, index);
    }
    return status;
}

send_route::state slot_sender::progress(unsigned *happened_p) noexcept {
    bool failed = false;
    for (unsigned i = 0; i < num_slots_ && under_way_ != 0 && !failed; ++i) {
        slot &one = slots_[i];
        const slot_state before = one.state;
        if (before == slot_state::empty || before == slot_state::full) {
            continue;
        }
        const ucs_status_t status = progress_slot(one, i);
        *happened_p += one.state != before ? 1 : 0;
        failed = status != UCS_OK && status != UCS_INPROGRESS;
    }
    if (failed || !fill_slots()) {
        return state::failed;
    }
    // The receiver must hear of every slot before it hears of the FIN.
    const bool complete = next_ == message_.total && under_way_ == 0 &&
                          !message_.services.control.has_unsent_of(message_.id);
    return complete ? state::complete : state::moving;
}

bool slot_sender::handle(const wire::control &message) noexcept {
    if (message.kind != wire::control_kind::slot_empty || message.slot >= num_slots_ ||
        slots_[message.slot].state != slot_state::full) {
        return false;
    }
    slots_[message.slot].state = slot_state::empty;
    return true;
}

void slot_sender::stop() noexcept {
    for (slot &one : slots_) {
        if (one.state == slot_state::packing) {
            one.done->synchronize();
            one.state = slot_state::full;
        }
    }
    under_way_ = 0;
}

std::atomic<uint64_t> &slot_sender::counter() const noexcept {
    return on_host_ ? counters::all().sent_by_host_slots : counters::all().sent_by_slots;
}

// ---- receiver

std::unique_ptr<receive_route> slot_receiver::prepare(receive_context &context,
                                                      const wire::sender_offer &offer) noexcept {
    const bool same_gpu = is_on(gpu::platform::instance().get_device(context.device), offer);
    // Launches reach no other GPU's memory of their own process.
    const bool on_host =
        (offer.flags & wire::host_slots) != 0 || (!same_gpu && is_own(offer.process));
    std::unique_ptr<slot_receiver> made(new (std::nothrow) slot_receiver(context));
    if (made == nullptr ||
        !made->begin(acquire_ring(context.device, context.rest(), same_gpu, on_host))) {
        return nullptr;
    }
    return made;
}

bool slot_receiver::begin(const ring &slots) noexcept {
    if (!slots) {
        return false;
    }
    slots_memory_ = slots;
    for (unsigned i = 0; i < slots.num_slots; ++i) {
        slots_[i].done = message_.services.events.acquire(message_.device);
        if (slots_[i].done == nullptr) {
            release(true);
            return false;
        }
    }
    return true;
}

slot_receiver::~slot_receiver() {
    slot_receiver::stop();
    slot_receiver::release(false);
    for (slot &one : slots_) {
        if (one.done != nullptr) {
            message_.services.events.release(message_.device, std::move(one.done));
        }
    }
}

void slot_receiver::describe(wire::control *answer_p) const noexcept {
    answer_p->slot = static_cast<uint16_t>(slots_memory_.num_slots);
    answer_p->length = slots_memory_.slot_size;
}

void slot_receiver::answer(uint32_t flags) noexcept {
    const bool on_host = slots_memory_.on_host;
    wire::control said = {};
    said.kind = wire::control_kind::accept_slots;
    said.flags = flags | (on_host ? wire::host_slots : 0);
    said.offset = memory().offset;
    said.process = message_.services.process;
    said.handle = memory().handle();
    describe(&said);
    message_.send(said);
    trace_mark(on_host ? "host slots lent" : "slots lent", message_.sender);
    trace_mark("answer leaves", message_.sender);
}

bool slot_receiver::handle(const wire::control &message) noexcept {
    if (message.kind != wire::control_kind::slot_full) {
        return false;
    }
    const bool fits = !has_fin_ && message.slot < slots_memory_.num_slots &&
                      !slots_[message.slot].unpacking && message.length >= 1 &&
                      message.length <= slots_memory_.slot_size &&
                      message.offset >= message_.first && message.offset <= message_.total &&
                      message.length <= message_.total - message.offset &&
                      message.length <= message_.rest() - announced_;
    if (!fits) {
        if (status_ == UCS_OK) {
            nc_error("a sender describes bytes that its message does not have");
        }
        status_ = UCS_ERR_IO_ERROR;
        return false;
    }
    slot &one = slots_[message.slot];
    announced_ += message.length;
    one.length = message.length;
    const ucs_status_t status =
        status_ != UCS_OK
            ? status_
            : message_.buffer->enqueue(message.offset, message.length,
                                       memory().address + message.slot * slots_memory_.slot_size,
                                       *one.done);
    if (status != UCS_OK) {
        finish_slot(message.slot, status);
        return false;
    }
    one.unpacking = true;
    ++unpacking_;
    message_.services.looks.poll(message_.id);
    return false;
}

void slot_receiver::finish_slot(unsigned index, ucs_status_t status) noexcept {
    slot &one = slots_[index];
    if (one.unpacking) {
        one.unpacking = false;
        --unpacking_;
    }
    unpacked_ += one.length;
    if (status != UCS_OK && status_ == UCS_OK) {
        status_ = status;
    }
    if (announced_ < message_.rest()) {
        wire::control message = {};
        message.kind = wire::control_kind::slot_empty;
        message.slot = static_cast<uint16_t>(index);
        message_.send(message);
    }
}

unsigned slot_receiver::progress() noexcept {
    unsigned happened = 0;
    for (unsigned i = 0; i < slots_memory_.num_slots && unpacking_ != 0; ++i) {
        if (slots_[i].unpacking) {
            const ucs_status_t status = slots_[i].done->query();
            if (status != UCS_INPROGRESS) {
                finish_slot(i, status);
                ++happened;
            }
        }
    }
    return happened;
}

void slot_receiver::handle_fin() noexcept {
    has_fin_ = true;
    if (announced_ != message_.rest()) {
        status_ = UCS_ERR_IO_ERROR;
        stop();
        announced_ = unpacked_ = message_.rest();
    }
}

bool slot_receiver::is_through() const noexcept {
    return unpacking_ == 0 && unpacked_ == message_.rest();
}

receive_route::rest_of slot_receiver::without_sender() noexcept {
    return unpacking_ != 0                     ? rest_of::moving
           : is_through() && status_ == UCS_OK ? rest_of::complete
                                               : rest_of::lost;
}

void slot_receiver::stop() noexcept {
    for (slot &one : slots_) {
        if (one.unpacking) {
            one.done->synchronize();
            one.unpacking = false;
        }
    }
    unpacking_ = 0;
}

void slot_receiver::release(bool sender_is_through) noexcept {
    const region lent = std::exchange(slots_memory_.memory, region{});
    if (lent && sender_is_through) {
        release_region(lent);
    } else if (lent) {
        keep_from_silent_sender(lent);
    }
}

void slot_receiver::keep_from_silent_sender(const region &memory) noexcept {
    quarantine(memory, message_.sending_process, {message_.id, message_.peer});
}

void slot_receiver::count_received() const noexcept {
    count(slots_memory_.on_host ? counters::all().received_by_host_slots
                                : counters::all().received_by_slots);
}

}  // namespace cuda_nc::uct
