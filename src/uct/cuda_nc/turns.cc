#include "uct/cuda_nc/turns.hpp"
#include "ucs/base/tick_clock.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

namespace cuda_nc::uct {
namespace {

constexpr size_t most_workers = 64;
std::array<worker_turns, most_workers> all;
std::array<std::atomic<const void *>, most_workers> workers;  // UCP's, of each; null: not given
std::atomic<size_t> num_used{0};                              // those behind have never been opened
std::atomic<uint64_t> num_opened{0};
std::mutex opening;

}  // namespace

std::atomic<const void *> &worker_turns::worker_of(const worker_turns &which) noexcept {
    return workers[static_cast<size_t>(&which - all.data())];
}

worker_turns *worker_turns::open(const void *transports) noexcept {
    std::lock_guard<std::mutex> guard(opening);
    for (worker_turns &one : all) {
        if (one.users_ != 0 && transports != nullptr && one.transports_ == transports) {
            ++one.users_;
            return &one;
        }
    }
    for (size_t i = 0; i < all.size(); ++i) {
        worker_turns &one = all[i];
        if (one.users_ != 0) {
            continue;
        }
        one.users_ = 1;
        one.transports_ = transports;
        one.num_posters_ = 0;
        one.poster_ = pthread_t();
        one.goes_on_ = false;
        one.posts_go_on_ = false;
        one.poster_progresses_ = false;
        one.opener_ = pthread_self();
        one.number_ = ++num_opened;
        num_used = std::max(num_used.load(), i + 1);
        return &one;
    }
    return nullptr;
}

void worker_turns::close() noexcept {
    std::lock_guard<std::mutex> guard(opening);
    if (--users_ == 0) {
        worker_of(*this) = nullptr;
    }
}

uint64_t worker_turns::number_opened() noexcept {
    return num_opened;
}

bool worker_turns::give(const void *worker, uint64_t before) noexcept {
    if (num_opened == before) {
        return false;
    }
    std::lock_guard<std::mutex> guard(opening);
    for (worker_turns &one : all) {
        if (one.users_ != 0 && one.number_ > before && worker_of(one) == nullptr &&
            pthread_equal(one.opener_, pthread_self()) != 0) {
            worker_of(one) = worker;
            return true;
        }
    }
    return false;
}

worker_turns *worker_turns::of(const void *worker) noexcept {
    const size_t number = num_used.load(std::memory_order_acquire);
    for (size_t i = 0; i < number; ++i) {
        if (workers[i].load(std::memory_order_acquire) == worker) {
            return &all[i];
        }
    }
    return nullptr;
}

bool worker_turns::await() noexcept {
    using clock = tick_clock;
    if (is_poster(pthread_self())) {
        poster_progresses_.store(true, std::memory_order_relaxed);
        num_progressed_.store(num_progressed_.load(std::memory_order_relaxed) + 1,
                              std::memory_order_relaxed);
        return false;
    }
    uint64_t posts = num_posts_.load(std::memory_order_relaxed);
    const uint64_t acts = posts + num_progressed_.load(std::memory_order_relaxed);
    if (acts == seen_.load(std::memory_order_relaxed) ||
        num_posters_.load(std::memory_order_relaxed) > most_posters ||
        (goes_on_.load(std::memory_order_relaxed) &&
         goes_on_.exchange(false, std::memory_order_relaxed))) {
        posts_go_on_.store(false, std::memory_order_relaxed);
        return false;
    }
    bool go_on = true;
    const clock::time_point begin = clock::now();
    for (clock::time_point looked = begin, now = begin; now - begin < most;) {
        sched_yield();
        now = clock::now();
        if (now - looked >= quiet) {
            const uint64_t then = std::exchange(posts, num_posts_.load(std::memory_order_relaxed));
            go_on = posts != then;
            if (!go_on) {
                break;
            }
            looked = now;
        }
    }
    posts_go_on_.store(go_on, std::memory_order_relaxed);
    seen_.store(posts + num_progressed_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    return true;
}

}  // namespace cuda_nc::uct
