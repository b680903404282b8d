// Workers, endpoints and requests of the processes of a matrix, and where they meet.
#pragma once

#include <poll.h>
#include <sched.h>
#include <ucp/api/ucp.h>

#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include "test/uct/hosts.hpp"
#include "test/uct/options.hpp"
#include "test/uct/soak.hpp"

namespace matrix {

constexpr auto patience = std::chrono::seconds(60);
using time_point = std::chrono::steady_clock::time_point;

inline time_point after(std::chrono::steady_clock::duration some) {
    return std::chrono::steady_clock::now() + some;
}

struct shared_state {
    struct {
        char bytes[4096];
        size_t length;
    } addresses[max_ranks];
    std::atomic<int> arrived[5];  // barriers, each used once
    std::atomic<int> ended_without_sleeper;
    hosts::state hosts;
    batch_gate gate;
};
inline shared_state *common;

inline ucp_worker_h worker;
inline int wakeup_fd = -1;
inline bool lost_a_peer = false;
inline int gone = -1;  // the process that is there no more

inline int number_of_present() {
    return chosen.ranks - (gone < 0 ? 0 : 1);
}

// Requests, because of a loss. A process that leaves of its own accord takes no message with it.
inline bool may_fail() {
    return lost_a_peer && chosen.leave_batch < 0 && gone < 0;
}

inline void barrier(int which, bool progress) {
    ++common->arrived[which];
    const time_point end = after(patience);
    while (common->arrived[which] < number_of_present()) {
        if (progress) {
            ucp_worker_progress(worker);
        }
        if (std::chrono::steady_clock::now() > end) {
            fail("another process does not come");
        }
    }
}

// ---- UCP

inline void on_error(void *, ucp_ep_h, ucs_status_t) {
    lost_a_peer = true;
}

inline void sleep_until_event() {
    ucs_status_t status = ucp_worker_arm(worker);
    if (status == UCS_OK) {
        pollfd wanted = {wakeup_fd, POLLIN, 0};
        poll(&wanted, 1, 5000);
    }
}

inline ucs_status_t wait_for(void *request, time_point end) {
    if (request == nullptr || UCS_PTR_IS_ERR(request)) {
        return UCS_PTR_STATUS(request);
    }
    ucs_status_t status;
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        if (ucp_worker_progress(worker) != 0) {
            continue;
        }
        if (chosen.wakeup) {
            sleep_until_event();
        } else {
            sched_yield();
        }
        if (std::chrono::steady_clock::now() > end) {
            fail("a message does not end");
        }
    }
    ucp_request_free(request);
    return status;
}

// False: it failed, as it may.
inline bool wait_well(void *request, time_point end) {
    ucs_status_t status = wait_for(request, end);
    if (!may_fail() && !chosen.may_fail) {
        check(status, "a request");
    }
    return status == UCS_OK;
}

// What will never come ends by being cancelled.
inline void cancel(void *request) {
    if (request != nullptr && !UCS_PTR_IS_ERR(request)) {
        ucp_request_cancel(worker, request);
    }
}

inline void await_loss_of_a_peer() {
    const time_point end = after(std::chrono::seconds(chosen.notice_within));
    while (!lost_a_peer) {
        ucp_worker_progress(worker);
        if (std::chrono::steady_clock::now() > end) {
            fail("no error is reported in time");
        }
    }
}

inline void close_all(std::vector<ucp_ep_h> &eps, bool by_force) {
    std::vector<void *> closing;
    ucp_request_param_t close = {};
    if (by_force) {
        close.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        close.flags = UCP_EP_CLOSE_FLAG_FORCE;
    }
    for (ucp_ep_h &ep : eps) {
        if (ep != nullptr) {
            closing.push_back(ucp_ep_close_nbx(ep, &close));
            ep = nullptr;
        }
    }
    const time_point end = after(patience);
    for (void *request : closing) {
        wait_well(request, end);
    }
}

// A process that is alone sends to itself.
inline bool has_messages_for(int peer) {
    return peer != gone && (peer != rank_ || chosen.self || number_of_present() == 1);
}

inline void connect(std::vector<ucp_ep_h> &eps) {
    for (int peer = 0; peer < chosen.ranks; ++peer) {
        ucp_ep_params_t of_ep = {};
        of_ep.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                           UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
        of_ep.address = reinterpret_cast<ucp_address_t *>(common->addresses[peer].bytes);
        of_ep.err_mode =
            chosen.peer_errors ? UCP_ERR_HANDLING_MODE_PEER : UCP_ERR_HANDLING_MODE_NONE;
        of_ep.err_handler.cb = on_error;
        ucp_ep_h &ep = eps[static_cast<size_t>(peer)];
        if (ep == nullptr && has_messages_for(peer)) {
            check(ucp_ep_create(worker, &of_ep, &ep), "ucp_ep_create");
        }
    }
}

}  // namespace matrix
