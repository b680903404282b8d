#include "uct/cuda_nc/turns.hpp"

#include <sched.h>

#include <algorithm>
#include <mutex>

namespace cuda_nc::uct {
namespace {

std::array<worker_turns, 64> all;
std::atomic<size_t> num_used{0};  // those behind have never been opened
std::atomic<uint64_t> num_opened{0};
std::mutex opening;

}  // namespace

worker_turns *worker_turns::open() noexcept {
    std::lock_guard<std::mutex> guard(opening);
    for (size_t i = 0; i < all.size(); ++i) {
        worker_turns &one = all[i];
        if (one.is_used_.exchange(true)) {
            continue;
        }
        one.num_posters_ = 0;
        one.last_poster_ = {};
        one.opener_ = pthread_self();
        one.number_ = ++num_opened;
        num_used = std::max(num_used.load(), i + 1);
        return &one;
    }
    return nullptr;
}

void worker_turns::close() noexcept {
    worker_ = nullptr;
    is_used_ = false;
}

uint64_t worker_turns::number_opened() noexcept {
    return num_opened;
}

bool worker_turns::give(const void *worker, uint64_t before) noexcept {
    std::lock_guard<std::mutex> guard(opening);
    for (worker_turns &one : all) {
        if (one.is_used_ && one.number_ > before && one.worker_ == nullptr &&
            pthread_equal(one.opener_, pthread_self()) != 0) {
            one.worker_ = worker;
            return true;
        }
    }
    return false;
}

worker_turns *worker_turns::of(const void *worker) noexcept {
    const size_t number = num_used.load(std::memory_order_acquire);
    for (size_t i = 0; i < number; ++i) {
        if (all[i].worker_.load(std::memory_order_acquire) == worker) {
            return &all[i];
        }
    }
    return nullptr;
}

void worker_turns::note_poster(pthread_t self) noexcept {
    last_poster_ = self;
    const unsigned number = num_posters_.load(std::memory_order_relaxed);
    if (number > most_posters || is_poster(self)) {
        return;
    }
    if (number < most_posters) {
        posters_[number].store(self, std::memory_order_relaxed);
    }
    num_posters_.store(number + 1, std::memory_order_release);
}

bool worker_turns::is_poster(pthread_t self) const noexcept {
    const size_t number =
        std::min<size_t>(num_posters_.load(std::memory_order_acquire), most_posters);
    for (size_t i = 0; i < number; ++i) {
        if (pthread_equal(posters_[i].load(std::memory_order_relaxed), self) != 0) {
            return true;
        }
    }
    return false;
}

void worker_turns::await() noexcept {
    using clock = std::chrono::steady_clock;
    if (is_poster(pthread_self())) {
        act();
        return;
    }
    uint64_t seen = acts_.load(std::memory_order_relaxed);
    if (seen == seen_.load(std::memory_order_relaxed) ||
        num_posters_.load(std::memory_order_relaxed) > most_posters) {
        return;
    }
    const clock::time_point begin = clock::now();
    for (clock::time_point looked = begin, now = begin; now - begin < most;) {
        sched_yield();
        now = clock::now();
        if (now - looked >= quiet) {
            const uint64_t acts = acts_.load(std::memory_order_relaxed);
            if (acts == seen) {
                break;
            }
            seen = acts;
            looked = now;
        }
    }
    seen_.store(seen, std::memory_order_relaxed);
}

}  // namespace cuda_nc::uct
