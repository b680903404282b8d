#include "ucp/dt/endpoint_sends.hpp"

#include <mutex>
#include <new>
#include <unordered_map>

namespace cuda_nc::dt {
namespace {

using finish_f = void (*)(void *);

struct endpoints {
    std::mutex mutex;
    std::unordered_map<ucp_ep_h, std::unordered_map<void *, finish_f>> sends;  // by their states
    std::unordered_map<const void *, ucp_ep_h> by_state;

    void count() noexcept {
        using namespace endpoint_sends;
        num_watched.store(static_cast<unsigned>(sends.size()), std::memory_order_relaxed);
        num_noted.store(static_cast<unsigned>(by_state.size()), std::memory_order_relaxed);
    }
};

endpoints &all() {
    static auto *only = new endpoints;
    return *only;
}

}  // namespace

namespace endpoint_sends {

std::atomic<unsigned> num_watched{0}, num_noted{0};
thread_local ucp_ep_h current = nullptr;

bool is_watched(ucp_ep_h ep) noexcept {
    endpoints &known = all();
    std::lock_guard<std::mutex> guard(known.mutex);
    return known.sends.count(ep) != 0;
}

void note(void *state, finish_f finish) noexcept try {
    if (current == nullptr) {
        return;
    }
    endpoints &known = all();
    std::lock_guard<std::mutex> guard(known.mutex);
    known.by_state[state] = current;
    known.sends[current][state] = finish;
    known.count();
} catch (const std::bad_alloc &) {
    // the state is kept if the send is aborted
}

void forget(const void *state) noexcept {
    endpoints &known = all();
    std::lock_guard<std::mutex> guard(known.mutex);
    const auto found = known.by_state.find(state);
    if (found != known.by_state.end()) {
        const auto of_ep = known.sends.find(found->second);
        if (of_ep != known.sends.end()) {
            of_ep->second.erase(const_cast<void *>(state));
        }
        known.by_state.erase(found);
        known.count();
    }
}

}  // namespace endpoint_sends

void watch_sends(ucp_ep_h ep) noexcept try {
    endpoints &known = all();
    std::lock_guard<std::mutex> guard(known.mutex);
    known.sends[ep];
    known.count();
} catch (const std::bad_alloc &) {
    // its sends are not noted
}

void finish_sends(ucp_ep_h ep) noexcept {
    endpoints &known = all();
    std::unique_lock<std::mutex> guard(known.mutex);
    const auto left = known.sends.extract(ep);
    if (left.empty()) {
        return;
    }
    for (const auto &[state, finish] : left.mapped()) {
        known.by_state.erase(state);
    }
    known.count();
    guard.unlock();
    for (const auto &[state, finish] : left.mapped()) {
        finish(state);
    }
}

}  // namespace cuda_nc::dt
