#include "ucp/dt/followed_send.hpp"

#include <mutex>
#include <new>
#include <unordered_map>
#include <unordered_set>

#include "ucp/dt/datatype.hpp"

namespace cuda_nc::dt {

// Of a send that has not ended.
struct followed_send::record {
    ucp_send_nbx_callback_t callback = nullptr;  // the program's, or null
    void *user_data = nullptr;
    void *state = nullptr;  // that UCX has not finished; null: none
    void (*finish)(void *) = nullptr;
};

struct followed_send::records {
    std::mutex mutex;
    std::unordered_set<ucp_ep_h> endpoints;
    std::unordered_map<uint64_t, record> sends;  // by number
    std::unordered_map<const void *, uint64_t> by_state;
    uint64_t last_number = 0;

    void count() noexcept {
        num_states_.store(static_cast<unsigned>(by_state.size()), std::memory_order_relaxed);
    }
};

followed_send::records &followed_send::all() noexcept {
    static auto *only = new records;  // outlives every thread
    return *only;
}

void note_endpoint(ucp_ep_h ep, bool may_abort) noexcept try {
    if (!may_abort && followed_send::num_endpoints_.load(std::memory_order_relaxed) == 0) {
        return;
    }
    auto &known = followed_send::all();
    std::lock_guard<std::mutex> guard(known.mutex);
    if (may_abort) {
        known.endpoints.insert(ep);
    } else {
        known.endpoints.erase(ep);
    }
    followed_send::num_endpoints_.store(static_cast<unsigned>(known.endpoints.size()),
                                        std::memory_order_relaxed);
} catch (const std::bad_alloc &) {
    // its sends are not followed
}

void followed_send::follow(ucp_ep_h ep, ucp_request_param_t *param) noexcept try {
    before_ = current_;
    current_ = nullptr;  // a callback within another send's call may send, too
    is_current_ = true;
    if (find_operations(param->datatype) == nullptr) {
        return;
    }
    records &known = all();
    std::lock_guard<std::mutex> guard(known.mutex);
    if (known.endpoints.count(ep) == 0) {
        return;
    }
    record its;
    if ((param->op_attr_mask & UCP_OP_ATTR_FIELD_CALLBACK) != 0) {
        its.callback = param->cb.send;
    }
    if ((param->op_attr_mask & UCP_OP_ATTR_FIELD_USER_DATA) != 0) {
        its.user_data = param->user_data;
    }
    const uint64_t number = known.last_number + 1;
    known.sends.emplace(number, its);
    known.last_number = number_ = number;
    param->op_attr_mask |= UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    param->cb.send = ended;
    param->user_data = reinterpret_cast<void *>(number);
    current_ = this;
} catch (const std::bad_alloc &) {
    // it is not followed
}

void followed_send::note_state_slow(void *state, void (*finish)(void *)) noexcept try {
    if (current_ == nullptr) {
        return;
    }
    records &known = all();
    std::lock_guard<std::mutex> guard(known.mutex);
    const auto its = known.sends.find(current_->number_);
    if (its != known.sends.end()) {
        known.by_state[state] = its->first;
        its->second.state = state;
        its->second.finish = finish;
        known.count();
        current_ = nullptr;  // what else begins within the call is another message's
    }
} catch (const std::bad_alloc &) {
    // the state is kept if the send is aborted
}

void followed_send::forget_state(const void *state) noexcept {
    records &known = all();
    std::lock_guard<std::mutex> guard(known.mutex);
    const auto found = known.by_state.find(state);
    if (found == known.by_state.end()) {
        return;
    }
    const auto its = known.sends.find(found->second);
    if (its != known.sends.end()) {
        its->second.state = nullptr;
        if (its->second.callback == nullptr) {
            known.sends.erase(its);  // UCX may never call ours
        }
    }
    known.by_state.erase(found);
    known.count();
}

// What is left of the send. Where it has failed its state is finished: UCX ends a request when it
// is through with all that belongs to it.
followed_send::record followed_send::take(uint64_t number, ucs_status_t status) noexcept {
    records &known = all();
    record its;
    {
        std::lock_guard<std::mutex> guard(known.mutex);
        const auto found = known.sends.find(number);
        if (found == known.sends.end()) {
            return its;
        }
        its = found->second;
        known.sends.erase(found);
        known.by_state.erase(its.state);
        known.count();
    }
    if (its.state != nullptr && UCS_STATUS_IS_ERR(status)) {
        its.finish(its.state);
    }
    return its;
}

void followed_send::end(uint64_t number, ucs_status_t status) noexcept {
    take(number, status);
}

void followed_send::ended(void *request, ucs_status_t status, void *number) {
    const record its = take(reinterpret_cast<uint64_t>(number), status);
    if (its.callback != nullptr) {
        its.callback(request, status, its.user_data);
    }
}

size_t followed_send::num_followed() noexcept {
    records &known = all();
    std::lock_guard<std::mutex> guard(known.mutex);
    return known.sends.size();
}

}  // namespace cuda_nc::dt
