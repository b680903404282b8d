#include "uct/cuda_nc/protocol/put_slots.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "ucs/base/log.hpp"
#include "ucs/base/status.hpp"

namespace cuda_nc::uct {

using namespace abi;

// As many as the receiver's, smaller where there is no memory for such large ones.
bool put_slots::acquire_memory(int device, unsigned num_slots, uint64_t size) noexcept {
    for (; !ours_ && size != 0; size = size > least_put ? size / 2 : 0) {
        ours_ = acquire_region(device, size * num_slots);
        slot_size_ = size;
    }
    known_ = ours_ ? memory_.find(ours_) : nullptr;
    return known_ != nullptr;
}

std::unique_ptr<put_slots> put_slots::open(carrier_memory &memory, int device,
                                           const wire::control &answer, uint64_t most) noexcept {
    const wire::network_answer &lent = answer.network;
    const unsigned num_slots = answer.slot;
    uint64_t bytes;
    if (num_slots == 0 || num_slots > ring::most_slots || answer.length == 0 ||
        __builtin_mul_overflow(answer.length, uint64_t{num_slots}, &bytes) ||
        lent.address > UINT64_MAX - bytes || lent.key_length != memory.key_bytes()) {
        nc_debug("a receiver's slots cannot be used");
        return nullptr;
    }
    std::unique_ptr<put_slots> made(new (std::nothrow) put_slots(memory));
    if (made == nullptr ||
        !made->acquire_memory(device, num_slots, std::min(answer.length, most))) {
        return nullptr;
    }
    made->there_ = lent.address;
    made->their_size_ = answer.length;
    ucs_status_t status = memory.ucx().uct_rkey_unpack(memory.component(), lent.key, &made->key_);
    if (status != UCS_OK) {
        nc_debug("a receiver's key cannot be used: %s", status_text(status));
        return nullptr;
    }
    made->has_key_ = true;
    return made;
}

put_slots::~put_slots() {
    if (has_key_) {
        memory_.ucx().uct_rkey_release(memory_.component(), &key_);
    }
    if (ours_) {
        release_region(ours_);
    }
}

// Called by UCX, whatever it is doing.
void put_slots::ended(uct_completion *completion) noexcept {
    auto *one = reinterpret_cast<put *>(completion);
    one->under_way = false;
    one->owner->failed_ |= completion->status != UCS_OK;
}

ucs_status_t put_slots::start(uct_ep *carrier, unsigned index, uint64_t length) noexcept {
    put &one = puts_[index];
    one = {{ended, 1, UCS_OK}, this, true};
    const uct_iov part = {address(index), length, known_->memh, 0, 1};
    ucs_status_t status = carrier->iface->ops.ep_put_zcopy(
        carrier, &part, 1, there_ + index * their_size_, key_.rkey, &one.completion);
    if (status != UCS_INPROGRESS) {
        one.under_way = false;
    }
    return status;
}

ucs_status_t put_slots::query(unsigned index) const noexcept {
    const put &one = puts_[index];
    return one.under_way ? UCS_INPROGRESS : one.completion.status;
}

bool put_slots::is_idle() const noexcept {
    return std::none_of(std::begin(puts_), std::end(puts_),
                        [](const put &one) { return one.under_way; });
}

}  // namespace cuda_nc::uct
