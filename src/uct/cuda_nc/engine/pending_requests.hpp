// UCP's requests that wait: here for a message's GPU work, or at the carrier for room.
//
// UCP asks to send a message's bytes again and again. While the GPUs are at work the answer is "no
// resource", UCP then adds the request as pending, and it stays here until the message is decided.
// Requests of anything but rendezvous data never wait for a GPU: the carrier gets them as they are.
// Used with UCX's worker locked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <unordered_map>
#include <utility>

#include "ucs/base/status.hpp"
#include "uct/cuda_nc/engine/message_owner.hpp"
#include "uct/cuda_nc/engine/progress_hook.hpp"

namespace cuda_nc::uct {

struct endpoint;

class pending_requests {
  public:
    pending_requests(const message_owner &messages, progress_hook &progress) noexcept
        : messages_(messages), progress_(progress) {}

    // The call on `ep` to send rendezvous data that just ended was refused because `message` is not
    // decided yet, or by the carrier: the next add() for `ep` is of that request. accepted(): the
    // last call was not refused.
    static constexpr uint64_t by_carrier = 0;  // no message
    void refused(endpoint &ep, uint64_t message) noexcept {
        refused_ = &ep;
        refused_for_ = message;
    }
    void accepted() noexcept { refused_ = nullptr; }

    // In place of the carrier's operations, with their contracts.
    ucs_status_t add(endpoint &ep, void *request, unsigned flags) noexcept;
    using purge_callback = void (*)(void *request, void *argument);
    void purge(endpoint &ep, purge_callback callback, void *argument) noexcept;

    // Requests may wait for this message, and it is decided: release_decided() calls them.
    void message_decided(uint64_t message) noexcept;
    // Calls the requests of decided messages; says how many.
    unsigned release_decided() noexcept;

    // Requests that are added from now on have this place or a higher one.
    uint64_t next_place() const noexcept { return next_place_; }
    // Whether a request for `ep` with a lower place waits here.
    bool holds(const endpoint &ep, uint64_t below_place) const noexcept;
    bool empty() const noexcept { return held_.empty(); }
    // Whether one waits whose message is decided.
    bool has_ready() const noexcept;
    void endpoint_closed(const endpoint &ep) noexcept {
        refused_ = refused_ == &ep ? nullptr : refused_;
    }

  private:
    // Where a request is held: its endpoint, and its place among all that UCP added, in UCP's
    // order.
    using position = std::pair<const endpoint *, uint64_t>;
    struct held_request {
        endpoint *ep;
        void *request;
        uint64_t message;
    };
    using held_requests = std::map<position, held_request>;
    struct carried_request;

    bool hold(endpoint &ep, void *request, uint64_t place) noexcept;
    ucs_status_t add_at(uint64_t place, endpoint &ep, void *request, unsigned flags) noexcept;
    held_request remove(held_requests::iterator at) noexcept;
    void release(held_requests::iterator at) noexcept;
    unsigned release_those_of(uint64_t message) noexcept;
    static ucs_status_t dispatch_carried(carried_request *carried) noexcept;
    static void purge_at_carrier(void *request, void *purge) noexcept;

    const message_owner &messages_;
    progress_hook &progress_;
    held_requests held_;
    std::unordered_multimap<uint64_t, position> positions_;  // in held_, by message
    std::deque<uint64_t> decided_;                           // messages that requests are held for
    bool looks_at_all_ = false;                              // decided_ is not complete
    uint64_t next_place_ = 0;
    endpoint *refused_ = nullptr;  // the last call on it was refused for the sake of refused_for_
    uint64_t refused_for_ = by_carrier;
};

}  // namespace cuda_nc::uct
