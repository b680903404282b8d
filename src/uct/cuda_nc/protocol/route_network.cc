#include "uct/cuda_nc/protocol/route_network.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "ucs/base/bits.hpp"
#include "ucs/base/trace.hpp"
#include "uct/cuda_nc/counters.hpp"
#include "uct/cuda_nc/iface.hpp"

namespace cuda_nc::uct {

std::unique_ptr<send_route> network_sender::open(const send_context &context,
                                                 const wire::control &answer,
                                                 bool *unreachable_p) noexcept {
    constexpr uint64_t step = 4 << 10;
    interface &iface = context.services.iface;
    *unreachable_p = false;
    if (!has_slots(answer)) {
        return nullptr;
    }
    const uint64_t rest = round_up(context.total - context.first, step);
    const uint64_t most = std::min<uint64_t>(rest, iface.longest_put / step * step);
    std::unique_ptr<put_slots> puts =
        put_slots::open(*iface.gpu_memory, context.device, answer, most);
    if (puts == nullptr) {
        *unreachable_p = true;
        return nullptr;
    }
    const uint64_t size = puts->slot_size();
    std::unique_ptr<network_sender> made(new (std::nothrow)
                                             network_sender(context, std::move(puts)));
    if (made == nullptr || !made->begin(answer.slot, size)) {
        return nullptr;
    }
    return made;
}

network_sender::~network_sender() {
    stop();
    if (puts_ != nullptr) {
        message_.services.puts.add(std::move(puts_), nullptr, 0, message_.id);
    }
}

void network_sender::cancel() noexcept {
    message_.services.puts.add(std::move(puts_), &message_.ep, message_.receiver, message_.id);
}

ucs_status_t network_sender::deliver_slot(unsigned index, uint64_t length) noexcept {
    ucs_status_t status;
    if (started_[index]) {
        status = puts_->query(index);
    } else {
        status = puts_->start(message_.ep.carrier, index, length);
        started_[index] = status != UCS_ERR_NO_RESOURCE;
    }
    if (status == UCS_OK) {
        status = fence_puts(message_.ep);
    }
    if (status == UCS_INPROGRESS || status == UCS_ERR_NO_RESOURCE) {
        return UCS_INPROGRESS;
    }
    started_[index] = false;
    return status;
}

std::atomic<uint64_t> &network_sender::counter() const noexcept {
    return counters::all().sent_by_network;
}

std::unique_ptr<receive_route> network_receiver::prepare(receive_context &context) noexcept {
    carrier_memory &network = *context.services.iface.gpu_memory;
    std::unique_ptr<network_receiver> made(new (std::nothrow) network_receiver(context));
    if (made == nullptr || network.refuses() ||
        !made->begin(acquire_gpu_ring(context.device, context.rest()))) {
        return nullptr;
    }
    made->registered_ = network.find(made->memory());
    if (made->registered_ == nullptr) {
        made->release(true);
        return nullptr;
    }
    return made;
}

network_receiver::~network_receiver() {
    stop();
    release(false);
}

void network_receiver::answer(uint32_t flags) noexcept {
    wire::control said = {};
    said.kind = wire::control_kind::accept_network;
    said.flags = flags;
    describe(&said);
    said.network.address = reinterpret_cast<uintptr_t>(memory().address);
    said.network.key_length =
        static_cast<uint32_t>(message_.services.iface.gpu_memory->key_bytes());
    static_assert(sizeof(said.network.key) == sizeof(registered_->key));
    std::memcpy(said.network.key, registered_->key, sizeof(registered_->key));
    message_.send(said);
    trace_mark("slots lent to the network", message_.sender);
    trace_mark("answer leaves", message_.sender);
}

// Nobody tells when a sender on another host is gone: the memory is not used again before the
// carrier is closed.
void network_receiver::keep_from_silent_sender(const region &memory) noexcept try {
    message_.services.iface.open_to_peers.push_back(memory);
} catch (const std::bad_alloc &) {
    // the memory is never used again
}

void network_receiver::count_received() const noexcept {
    count(counters::all().received_by_network);
}

}  // namespace cuda_nc::uct
