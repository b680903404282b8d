#include "ucp/dt/cancelled_state.hpp"

#include <mutex>

namespace cuda_nc::dt {
namespace {

std::mutex mutex;
cancelled_state *first = nullptr;

}  // namespace

std::atomic<unsigned> cancels_under_way{0};

cancelled_state::cancelled_state(const void *state) noexcept : state_(state) {
    std::lock_guard<std::mutex> guard(mutex);
    next_ = first;
    first = this;
    cancels_under_way.fetch_add(1);
}

cancelled_state::~cancelled_state() {
    std::lock_guard<std::mutex> guard(mutex);
    cancelled_state **link = &first;
    while (*link != this) {
        link = &(*link)->next_;
    }
    *link = next_;
    cancels_under_way.fetch_sub(1);
}

bool cancelled_state::is_finished() const noexcept {
    std::lock_guard<std::mutex> guard(mutex);
    return finished_;
}

void note_finish_slow(const void *state) noexcept {
    std::lock_guard<std::mutex> guard(mutex);
    for (cancelled_state *one = first; one != nullptr; one = one->next_) {
        one->finished_ |= one->state_ == state;
    }
}

}  // namespace cuda_nc::dt
