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
    if (refused_for_ == by_carrier) {
        return false;
    }
    const position where = {&ep, place};
    held_.emplace(where, held_request{&ep, request, refused_for_});
    try {
        positions_.emplace(refused_for_, where);
    } catch (...) {
        held_.erase(where);
        throw;
    }
    if (messages_.is_decided(refused_for_)) {
        message_decided(refused_for_);
    }
    progress_.start();
    return true;
} catch (const std::bad_alloc &) {
    return false;  // the carrier says BUSY, and UCP asks again
}

// The member of a request that UCX's transports know; all others are UCP's.
struct pending_request {
    ucs_status_t (*func)(pending_request *);
};

// A request of rendezvous data that waits at the carrier, in a wrapper: when the carrier has room
// the request is called, and then it may have to wait for a GPU here. Begins as uct_pending_req
// does.
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
    return refused_ == &ep ? add_at(next_place_++, ep, request, flags)
                           : ep.carrier->iface->ops.ep_pending_add(ep.carrier, request, flags);
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

void pending_requests::purge_at_carrier(void *request, void *purge) noexcept {
    auto *to = static_cast<purge_arguments *>(purge);
    auto *carried = static_cast<carried_request *>(request);
    if (carried->func != dispatch_carried) {
        to->callback(request, to->argument);
        return;
    }
    to->callback(carried->original, to->argument);
    delete carried;
}

void pending_requests::purge(endpoint &ep, purge_callback callback, void *argument) noexcept {
    purge_arguments to = {callback, argument};
    const position least = {&ep, 0};
    for (auto at = held_.lower_bound(least); at != held_.end() && at->first.first == &ep;) {
        to.callback(remove(at).request, argument);
        at = held_.lower_bound(least);  // the callback may have changed the list
    }
    ep.carrier->iface->ops.ep_pending_purge(ep.carrier,
                                            reinterpret_cast<function>(purge_at_carrier), &to);
}

void pending_requests::message_decided(uint64_t message) noexcept try {
    if (positions_.count(message) != 0) {
        decided_.push_back(message);
    }
} catch (const std::bad_alloc &) {
    looks_at_all_ = true;
}

pending_requests::held_request pending_requests::remove(held_requests::iterator at) noexcept {
    const held_request one = at->second;
    auto [index, end] = positions_.equal_range(one.message);
    while (index != end && index->second != at->first) {
        ++index;
    }
    if (index != end) {
        positions_.erase(index);
    }
    held_.erase(at);
    return one;
}

// A request that the carrier has no room for waits there.
void pending_requests::release(held_requests::iterator at) noexcept {
    const uint64_t place = at->first.second;
    const held_request one = remove(at);
    auto *request = static_cast<pending_request *>(one.request);
    for (;;) {
        ucs_status_t status = request->func(request);
        const bool refused = status == UCS_ERR_NO_RESOURCE;
        if (status != UCS_INPROGRESS &&
            !(refused && add_at(place, *one.ep, request, 0) == UCS_ERR_BUSY)) {
            return;
        }
    }
}

unsigned pending_requests::release_those_of(uint64_t message) noexcept {
    unsigned happened = 0;
    for (auto found = positions_.find(message);
         found != positions_.end() && messages_.is_decided(message);
         found = positions_.find(message)) {  // the call may have changed the list
        release(held_.find(found->second));
        ++happened;
    }
    return happened;
}

unsigned pending_requests::release_decided() noexcept {
    unsigned happened = 0;
    if (std::exchange(looks_at_all_, false)) {
        for (auto at = held_.begin(); at != held_.end();) {
            const position here = at->first;
            happened += release_those_of(at->second.message);
            at = held_.upper_bound(here);
        }
    }
    while (!decided_.empty()) {  // the calls may progress, and decide more
        const uint64_t message = decided_.front();
        decided_.pop_front();
        happened += release_those_of(message);
    }
    return happened;
}

bool pending_requests::holds(const endpoint &ep, uint64_t below_place) const noexcept {
    const auto first = held_.lower_bound({&ep, 0});
    return first != held_.end() && first->first.first == &ep && first->first.second < below_place;
}

bool pending_requests::has_ready() const noexcept {
    return looks_at_all_ || std::any_of(decided_.begin(), decided_.end(), [this](uint64_t one) {
               return positions_.count(one) != 0;
           });
}

}  // namespace cuda_nc::uct
