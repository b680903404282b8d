// Sends of our datatypes whose end UCX may not tell the datatype of.
//
// UCX does not call a datatype's finish() for every send that it aborts, because the peer is lost
// or the endpoint is closed by force: it forgets those by rendezvous. It does call the request's
// callback. So on endpoints with error handling, which alone are aborted, a send is given a
// callback of ours; it finishes what the send has left, and calls the program's. Other endpoints
// cost a load for each send, as long as no endpoint has error handling; later a short lock.
//
// Where a program frees the request of a send before that has ended, UCX calls no callback: then an
// aborted send keeps its state, and, with a callback of the program, any send some 100 bytes.
//
// Thread safe.
#pragma once

#include <ucp/api/ucp.h>

#include <atomic>
#include <cstdint>

#include "ucs/base/compiler.hpp"

namespace cuda_nc::dt {

// `ep` was made, and its sends may be aborted, or not. To be said of each that is made: addresses
// are used again.
void note_endpoint(ucp_ep_h ep, bool may_abort) noexcept;

// One call of UCP that sends. On the stack of the thread that calls, around that call.
class followed_send {
  public:
    // Sets the callback in `param`, which UCP is to be given, where the send is to be followed.
    followed_send(ucp_ep_h ep, ucp_request_param_t *param) noexcept {
        if (CUDA_NC_UNLIKELY(num_endpoints_.load(std::memory_order_relaxed) != 0)) {
            follow(ep, param);
        }
    }
    ~followed_send() {
        if (CUDA_NC_UNLIKELY(is_current_)) {
            current_ = before_;
        }
    }
    followed_send(const followed_send &) = delete;
    followed_send &operator=(const followed_send &) = delete;

    // `result` is what UCP has returned, and is to be returned.
    void *returned(void *result) noexcept {
        if (CUDA_NC_UNLIKELY(number_ != 0) && !UCS_PTR_IS_PTR(result)) {
            end(number_, UCS_PTR_STATUS(result));  // no callback is called
        }
        return result;
    }

    // To be called by start_pack() with what UCX is to keep; `finish` is the datatype's.
    static void note_state(void *state, void (*finish)(void *)) noexcept {
        if (CUDA_NC_UNLIKELY(num_endpoints_.load(std::memory_order_relaxed) != 0)) {
            note_state_slow(state, finish);
        }
    }
    // To be called by finish() before the state ends.
    static void note_finish(const void *state) noexcept {
        if (CUDA_NC_UNLIKELY(num_states_.load(std::memory_order_relaxed) != 0)) {
            forget_state(state);
        }
    }

    static size_t num_followed() noexcept;  // for tests

  private:
    friend void note_endpoint(ucp_ep_h ep, bool may_abort) noexcept;
    struct record;
    struct records;
    static records &all() noexcept;

    void follow(ucp_ep_h ep, ucp_request_param_t *param) noexcept;
    static record take(uint64_t number, ucs_status_t status) noexcept;
    static void end(uint64_t number, ucs_status_t status) noexcept;
    static void ended(void *request, ucs_status_t status, void *number);
    static void note_state_slow(void *state, void (*finish)(void *)) noexcept;
    static void forget_state(const void *state) noexcept;

    uint64_t number_ = 0;  // of the send; 0: it is not followed
    bool is_current_ = false;
    const followed_send *before_ = nullptr;

    static inline std::atomic<unsigned> num_endpoints_{0};  // with error handling, so far
    static inline std::atomic<unsigned> num_states_{0};     // of sends that are followed
    // The one in whose call this thread is: read where UCP calls start_pack(), which no parameter
    // of ours reaches.
    static inline thread_local const followed_send *current_ = nullptr;
};

}  // namespace cuda_nc::dt
