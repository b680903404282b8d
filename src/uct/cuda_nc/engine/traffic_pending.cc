// UCP's requests that wait for a GPU.
#include "uct/cuda_nc/engine/traffic.hpp"

#include <algorithm>
#include <new>

#include "uct/cuda_nc/ep.hpp"
#include "uct/cuda_nc/engine/message_map.hpp"
#include "uct/cuda_nc/protocol/receiving.hpp"
#include "uct/cuda_nc/protocol/sending.hpp"

namespace cuda_nc::uct {

using namespace abi;

bool traffic::hold(endpoint &ep, void *request, uint64_t place) noexcept try {
    if (refused_ != &ep) {
        return false;
    }
    refused_ = nullptr;
    held_.push_back({&ep, request, refused_for_, place});
    one_is_settled(refused_for_);  // perhaps it is
    start_progress();
    return true;
} catch (const std::bad_alloc &) {
    return false;  // the carrier says BUSY, and UCP asks again
}

// What UCX knows of a request: the rest is UCP's.
struct pending_request {
    ucs_status_t (*func)(pending_request *);
};

// A request of UCP at the carrier, in a wrapper: the carrier may send its first bytes, and then it
// is a GPU that it waits for. Begins as uct_pending_req does.
struct traffic::carried_request {
    ucs_status_t (*func)(carried_request *);
    char reserved[40];
    traffic *owner;
    endpoint *ep;
    pending_request *original;
    uint64_t place;
};

ucs_status_t traffic::dispatch_carried(carried_request *carried) noexcept {
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

ucs_status_t traffic::add_pending(endpoint &ep, void *request, unsigned flags) noexcept {
    return add_at(next_place_++, ep, request, flags);
}

ucs_status_t traffic::add_at(uint64_t place, endpoint &ep, void *request, unsigned flags) noexcept {
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
    void (*callback)(void *, void *);
    void *arg;
};

void traffic::purge_carried(carried_request *carried, void *purge) noexcept {
    auto *to = static_cast<purge_arguments *>(purge);
    to->callback(carried->original, to->arg);
    delete carried;
}

void traffic::purge_pending(endpoint &ep, function callback, void *arg) noexcept {
    purge_arguments to = {reinterpret_cast<purge_callback>(callback), arg};
    for (size_t i = 0; i < held_.size();) {
        if (held_[i].ep == &ep) {
            void *request = held_[i].request;
            held_.erase(held_.begin() + static_cast<ptrdiff_t>(i));
            to.callback(request, arg);
            i = 0;
        } else {
            ++i;
        }
    }
    ep.carrier->iface->ops.ep_pending_purge(ep.carrier, reinterpret_cast<function>(purge_carried),
                                            &to);
}

void traffic::one_is_settled(uint64_t message) noexcept try {
    settled_.push_back(message);
} catch (const std::bad_alloc &) {
    looks_at_all_held_ = true;
}

// Where the carrier is full it waits there.
void traffic::release(size_t index) noexcept {
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

// Requests whose message has been settled go on. Among many each is looked for by its message.
unsigned traffic::release_held(bool all) noexcept {
    unsigned happened = 0;
    for (size_t s = 0; s < settled_.size(); ++s) {  // it may grow
        const uint64_t message = settled_[s];
        for (size_t i = 0; i < held_.size();) {
            if (held_[i].message == message && has_settled(message)) {
                release(i);
                ++happened;
                i = 0;  // whatever that has changed
            } else {
                ++i;
            }
        }
    }
    settled_.clear();
    for (size_t i = 0; all && i < held_.size();) {
        if (has_settled(held_[i].message)) {
            release(i);
            ++happened;
            i = 0;
        } else {
            ++i;
        }
    }
    return happened;
}

}  // namespace cuda_nc::uct
