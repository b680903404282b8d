// The sends of our datatypes that are under way on an endpoint with error handling.
//
// No UCX calls a datatype's finish() for a send that it aborts: where the endpoint is closed by
// force, at the latest. The hooks say what endpoints there are (hooks/common/endpoints.hpp), what
// is sent on them, and when one is gone: then what is left of its sends is finished here. Endpoints
// without error handling cannot be closed by force, and cost a load for each send.
//
// Thread safe.
#pragma once

#include <ucp/api/ucp.h>

#include <atomic>

#include "ucs/base/compiler.hpp"

namespace cuda_nc::dt {

// `ep` was made with error handling.
void watch_sends(ucp_ep_h ep) noexcept;

// `ep` was closed by force: UCX has ended all its sends, and calls finish() for none from now on.
void finish_sends(ucp_ep_h ep) noexcept;

namespace endpoint_sends {

extern std::atomic<unsigned> num_watched;  // endpoints
extern std::atomic<unsigned> num_noted;    // sends
// What this thread sends on: read where UCP calls start_pack(), and no parameter of ours reaches.
extern thread_local ucp_ep_h current;

bool is_watched(ucp_ep_h ep) noexcept;
void note(void *state, void (*finish)(void *)) noexcept;
void forget(const void *state) noexcept;

}  // namespace endpoint_sends

// There while UCP is asked to send on `ep`.
class send_scope {
  public:
    explicit send_scope(ucp_ep_h ep) noexcept
        : active_(
              CUDA_NC_UNLIKELY(endpoint_sends::num_watched.load(std::memory_order_relaxed) != 0) &&
              endpoint_sends::is_watched(ep)) {
        if (active_) {
            before_ = endpoint_sends::current;
            endpoint_sends::current = ep;
        }
    }
    ~send_scope() {
        if (active_) {
            endpoint_sends::current = before_;  // a callback may send, too
        }
    }
    send_scope(const send_scope &) = delete;
    send_scope &operator=(const send_scope &) = delete;

  private:
    const bool active_;
    ucp_ep_h before_ = nullptr;
};

// To be called by start_pack() with what UCX is to keep; `finish` is the datatype's. A send that
// cannot be noted for want of memory keeps its state if it is aborted.
inline void note_send(void *state, void (*finish)(void *)) noexcept {
    if (CUDA_NC_UNLIKELY(endpoint_sends::num_watched.load(std::memory_order_relaxed) != 0)) {
        endpoint_sends::note(state, finish);
    }
}

// To be called by finish() before the state ends.
inline void note_send_ends(const void *state) noexcept {
    if (CUDA_NC_UNLIKELY(endpoint_sends::num_noted.load(std::memory_order_relaxed) != 0)) {
        endpoint_sends::forget(state);
    }
}

}  // namespace cuda_nc::dt
