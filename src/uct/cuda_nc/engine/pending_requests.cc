#include "uct/cuda_nc/engine/pending_requests.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "uct/cuda_nc/ep.hpp"

namespace cuda_nc::uct {

using namespace abi;

bool pending_requests::hold(endpoint &ep, void *request, uint64_t place) noexcept try {
    if (refused_ != &ep) {
        return false;
    }
    refused_ = nullptr;
    held_.push_back({&ep, request, refused_for_, place});
    message_decided(refused_for_);  // perhaps it is
    progress_.start();
    return true;
} catch (const std::bad_alloc &) {
    return false;  // the carrier says BUSY, and UCP asks again
}

// The member of a request that UCX's transports know; all others are UCP's.
struct pending_request {
    ucs_status_t (*func)(pending_request *);
};

// A request of UCP that waits at the carrier, in a wrapper: when the carrier has room the request
// is called, and then it may have to wait for a GPU here. Begins as uct_pending_req does.
struct pending_requests::carried_request {
    ucs_status_t (*func)(carried_request *);
    char reserved[40];
    pending_requests *owner;
    endpoint *ep;
    pending_request *original;
    uint64_t place;
};

ucs_status_t pending_requests::dispatch_carried(carried_request *carried) noexcept {
    carried->owner->refused_ = nullptr;
    ucs_status_t status = carried->original->func(carried->original);
    bool held = status == UCS_ERR_NO_RESOURCE &&
                carried->owner->hold(*carried->ep, carried->original, carried->place);
    if (status != UCS_OK && !held) {
        return status;
    }
    delete carried;
    return UCS_OK;
}

ucs_status_t pending_requests::add(endpoint &ep, void *request, unsigned flags) noexcept {
    return add_at(next_place_++, ep, request, flags);
}

ucs_status_t pending_requests::add_at(uint64_t place, endpoint &ep, void *request,
                                      unsigned flags) noexcept {
    if (hold(ep, request, place)) {
        return UCS_OK;
    }
    auto *carried = new (std::nothrow) carried_request{
        dispatch_carried, {}, this, &ep, static_cast<pending_request *>(request), place};
    if (carried == nullptr) {
        return UCS_ERR_BUSY;  // UCP asks again
    }
    ucs_status_t status = ep.carrier->iface->ops.ep_pending_add(ep.carrier, carried, flags);
    if (status != UCS_OK) {
        delete carried;
    }
    return status;
}

struct purge_arguments {
    pending_requests::purge_callback callback;
    void *argument;
};

void pending_requests::purge_carried(carried_request *carried, void *purge) noexcept {
    auto *to = static_cast<purge_arguments *>(purge);
    to->callback(carried->original, to->argument);
    delete carried;
}

void pending_requests::purge(endpoint &ep, purge_callback callback, void *argument) noexcept {
    purge_arguments to = {callback, argument};
    for (size_t i = 0; i < held_.size();) {
        if (held_[i].ep == &ep) {
            void *request = held_[i].request;
            held_.erase(held_.begin() + static_cast<ptrdiff_t>(i));
            to.callback(request, argument);
            i = 0;
        } else {
            ++i;
        }
    }
    ep.carrier->iface->ops.ep_pending_purge(ep.carrier, reinterpret_cast<function>(purge_carried),
                                            &to);
}

void pending_requests::message_decided(uint64_t message) noexcept try {
    decided_.push_back(message);
} catch (const std::bad_alloc &) {
    looks_at_all_ = true;
}

// A request that the carrier has no room for waits there.
void pending_requests::release(size_t index) noexcept {
    const held_request one = held_[index];
    held_.erase(held_.begin() + static_cast<ptrdiff_t>(index));
    auto *request = static_cast<pending_request *>(one.request);
    for (;;) {
        ucs_status_t status = request->func(request);
        const bool refused = status == UCS_ERR_NO_RESOURCE;
        if (status != UCS_INPROGRESS &&
            !(refused && add_at(one.place, *one.ep, request, 0) == UCS_ERR_BUSY)) {
            return;
        }
    }
}

unsigned pending_requests::release_decided(bool all) noexcept {
    all |= std::exchange(looks_at_all_, false);
    unsigned happened = 0;
    for (size_t s = 0; s < decided_.size(); ++s) {  // the list may grow
        const uint64_t message = decided_[s];
        for (size_t i = 0; i < held_.size();) {
            if (held_[i].message == message && messages_.is_decided(message)) {
                release(i);
                ++happened;
                i = 0;  // the call may have changed the list
            } else {
                ++i;
            }
        }
    }
    decided_.clear();
    for (size_t i = 0; all && i < held_.size();) {
        if (messages_.is_decided(held_[i].message)) {
            release(i);
            ++happened;
            i = 0;
        } else {
            ++i;
        }
    }
    return happened;
}

bool pending_requests::holds(const endpoint &ep, uint64_t below_place) const noexcept {
    return std::any_of(held_.begin(), held_.end(), [&ep, below_place](const held_request &one) {
        return one.ep == &ep && one.place < below_place;
    });
}

bool pending_requests::has_ready() const noexcept {
    return std::any_of(held_.begin(), held_.end(), [this](const held_request &one) {
        return messages_.is_decided(one.message);
    });
}

}  // namespace cuda_nc::uct
