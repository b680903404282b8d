// Two processes with a worker each, and one message between them.
#pragma once

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "test/uct/messages.hpp"

namespace pair {

using namespace matrix;

constexpr auto patience = std::chrono::seconds(60);

// In memory that both share.
struct meeting {
    char addresses[2][4096];
    std::atomic<bool> has_address[2], is_answered;
};
inline meeting *met;

inline ucp_context_h context;
inline ucp_worker_h worker;

template <typename condition>
void wait_until(condition holds, const char *what) {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!holds()) {
        if (ucp_worker_progress(worker) == 0) {
            sched_yield();
        }
        if (std::chrono::steady_clock::now() > end) {
            fail(std::string(what) + " does not end");
        }
    }
}

inline bool has_ended(void *request) {
    return request == nullptr || ucp_request_check_status(request) != UCS_INPROGRESS;
}

inline void progress_for(std::chrono::microseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
        ucp_worker_progress(worker);
    }
}

inline void open(uint64_t features = UCP_FEATURE_TAG) {
    setenv("UCX_CUDA_NC_SIM_DEVICE", std::to_string(rank_).c_str(), 0);
    ucp_params_t parameters = {};
    parameters.field_mask = UCP_PARAM_FIELD_FEATURES;
    parameters.features = features;
    check(ucp_init(&parameters, nullptr, &context), "ucp_init");
    ucp_worker_params_t of_worker = {};
    check(ucp_worker_create(context, &of_worker, &worker), "ucp_worker_create");
}

inline void publish_address() {
    ucp_address_t *address;
    size_t length;
    check(ucp_worker_get_address(worker, &address, &length), "ucp_worker_get_address");
    if (length > sizeof(met->addresses[0])) {
        fail("a long address");
    }
    std::memcpy(met->addresses[rank_], address, length);
    ucp_worker_release_address(worker, address);
    met->has_address[rank_] = true;
    wait_until([] { return met->has_address[1 - rank_].load(); }, "the other's address");
}

inline ucp_ep_h connect(ucp_err_handling_mode_t mode) {
    ucp_ep_params_t of_ep = {};
    of_ep.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                       UCP_EP_PARAM_FIELD_ERR_HANDLER;
    of_ep.address = reinterpret_cast<ucp_address_t *>(met->addresses[1 - rank_]);
    of_ep.err_mode = mode;
    of_ep.err_handler.cb = [](void *, ucp_ep_h, ucs_status_t) {};
    ucp_ep_h ep;
    check(ucp_ep_create(worker, &of_ep, &ep), "ucp_ep_create");
    return ep;
}

inline void *start_send(ucp_ep_h ep, buffer &source) {
    ucp_request_param_t parameters = {};
    parameters.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
    parameters.datatype = source.datatype();
    return ucp_tag_send_nbx(ep, source.address(), source.count(), 1, &parameters);
}

inline void *start_receive(buffer &target) {
    ucp_request_param_t parameters = {};
    parameters.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
    parameters.datatype = target.datatype();
    return ucp_tag_recv_nbx(worker, target.address(), target.count(), 1, ~ucp_tag_t(0),
                            &parameters);
}

inline void await_beginning() {
    ucp_tag_recv_info_t info;
    wait_until([&] { return ucp_tag_probe_nb(worker, 1, ~ucp_tag_t(0), 0, &info) != nullptr; },
               "the message's beginning");
}

// `bytes` of a message from GPU memory to GPU memory, in blocks.
inline message large_message(int id, size_t bytes) {
    message one = {};
    one.id = id;
    one.bytes = one.room = bytes;
    one.send = one.receive = {'g', 64, 128, 1, 0, false};
    return one;
}

// Memory that children share, made zero each time.
template <typename state>
state *share() {
    static void *memory =
        mmap(nullptr, sizeof(state), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    auto *made = new (memory) state();
    met = made;
    return made;
}

}  // namespace pair
