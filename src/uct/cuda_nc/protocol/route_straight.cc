#include "uct/cuda_nc/protocol/route_straight.hpp"

#include <new>
#include <utility>

#include "ucs/base/trace.hpp"
#include "uct/cuda_nc/counters.hpp"
#include "uct/cuda_nc/protocol/source.hpp"

namespace cuda_nc::uct {

straight_move::~straight_move() {
    stop();
    if (done_ != nullptr) {
        services_.events.release(device_, std::move(done_));
    }
}

bool straight_move::begin(user_buffer &buffer, peer_memory there, uint64_t total) noexcept {
    buffer_ = &buffer;
    total_ = total;
    there_ = std::move(there);
    runs_ = give_order() || launch();
    if (runs_) {
        services_.looks.poll(id_);
    } else {
        there_ = {};
    }
    return runs_;
}

bool straight_move::give_order() noexcept {
    gpu::device *const where = gpu::platform::instance().get_device(device_);
    gpu::pipe_work part;
    part.length = total_;
    if (where == nullptr || total_ > gpu::longest_order ||
        buffer_->describe(part, false) != UCS_OK) {
        return false;
    }
    gpu::transfer work;
    work.dir = part.dir;
    work.layout = *part.layout;
    work.base = part.base;
    work.packed = there_.address;
    work.length = total_;
    work.into_own_memory = part.into_own_memory;
    if (!order_.give(*where, work)) {
        return false;
    }
    trace_mark("order given", id_);
    count(counters::all().orders);
    return true;
}

bool straight_move::launch() noexcept {
    done_ = services_.events.acquire(device_);
    if (done_ == nullptr || buffer_->enqueue(0, total_, there_.address, *done_) != UCS_OK) {
        return false;
    }
    trace_mark("launched", id_);
    if (gpu::device *where = gpu::platform::instance().get_device(device_)) {
        gpu::given_orders::launched_instead(*where);
    }
    return true;
}

ucs_status_t straight_move::progress() noexcept {
    if (!runs_) {
        return status_;
    }
    if (!order_.is_given()) {
        status_ = done_->query();
    } else if ((status_ = order_.query()) == UCS_ERR_CANCELED) {
        order_.forget();
        status_ = launch() ? UCS_INPROGRESS : UCS_ERR_IO_ERROR;
    }
    runs_ = status_ == UCS_INPROGRESS;
    if (!runs_) {
        there_ = {};  // nobody touches it any more
    }
    return status_;
}

void straight_move::stop() noexcept {
    if (std::exchange(runs_, false)) {
        status_ = order_.is_given() ? order_.await() : done_->synchronize();
        there_ = {};
    }
}

// ---- sender

std::unique_ptr<send_route> straight_sender::open(const send_context &context,
                                                  const wire::control &answer,
                                                  bool *unreachable_p) noexcept {
    *unreachable_p = false;
    if (context.first != 0 || answer.length != context.total) {
        return nullptr;
    }
    wire::source_descriptor place = {};
    place.allocation = answer.memory.allocation;
    place.address = answer.memory.address;
    place.displacement_0 = static_cast<int64_t>(answer.offset);
    place.memory = answer.handle;
    place.block_length = answer.length;
    peer_memory there = reach_memory(context.device, answer.process, place, context.total);
    if (!there) {
        *unreachable_p = true;
        return nullptr;
    }
    std::unique_ptr<straight_sender> made(new (std::nothrow) straight_sender(context));
    if (made == nullptr || !made->move_.begin(context.buffer, std::move(there), context.total)) {
        return nullptr;
    }
    trace_mark("packs straight", context.id);
    return made;
}

send_route::state straight_sender::progress(unsigned *) noexcept {
    switch (move_.progress()) {
        case UCS_OK:
            return state::complete;
        case UCS_INPROGRESS:
            return state::moving;
        default:
            return state::failed;
    }
}

std::atomic<uint64_t> &straight_sender::counter() const noexcept {
    return counters::all().sent_straight;
}

// ---- receiver, contiguous

std::unique_ptr<receive_route> straight_target::prepare(receive_context &context,
                                                        const plain_memory &memory,
                                                        const wire::sender_offer &offer) noexcept {
    const bool same_gpu = is_on(gpu::platform::instance().get_device(context.device), offer);
    // Launches reach no other GPU's memory of their own process.
    if ((offer.flags & (wire::host_slots | wire::not_straight)) != 0 ||
        (!same_gpu && is_own(offer.process))) {
        return nullptr;
    }
    const wire::source_descriptor place =
        describe_memory(memory.memory(), memory.address(), context.total);
    if (place.allocation == 0) {
        return nullptr;
    }
    return std::unique_ptr<receive_route>(new (std::nothrow) straight_target(context, place));
}

void straight_target::answer(uint32_t flags) noexcept {
    wire::control said = {};
    said.kind = wire::control_kind::accept_straight;
    said.flags = flags;
    said.offset = static_cast<uint64_t>(place_.displacement_0);
    said.length = message_.total;
    said.process = message_.services.process;
    said.handle = place_.memory;
    said.memory = {place_.allocation, place_.address};
    message_.send(said);
    trace_mark("answer leaves", message_.sender);
}

void straight_target::count_received() const noexcept {
    count(counters::all().received_straight);
}

// ---- receiver, a datatype

std::unique_ptr<receive_route> straight_receiver::prepare(receive_context &context,
                                                          const wire::early_offer &offer) noexcept {
    peer_memory there =
        reach_memory(context.device, offer.offer.process, offer.source, context.total);
    std::unique_ptr<straight_receiver> made(new (std::nothrow) straight_receiver(context));
    if (!there || made == nullptr ||
        !made->move_.begin(*context.buffer, std::move(there), context.total)) {
        return nullptr;
    }
    return made;
}

unsigned straight_receiver::progress() noexcept {
    const bool ran = move_.runs();
    const ucs_status_t status = move_.progress();
    if (!ran || status == UCS_INPROGRESS) {
        return 0;
    }
    is_through_ = status == UCS_OK;
    has_failed_ = status != UCS_OK;
    return 1;
}

void straight_receiver::count_received() const noexcept {
    count(counters::all().received_straight);
}

}  // namespace cuda_nc::uct
