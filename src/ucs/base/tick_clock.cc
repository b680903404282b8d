#include "ucs/base/tick_clock.hpp"

#include <algorithm>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace cuda_nc {
namespace {

int64_t system_time() noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

bool has_constant_rate() noexcept {
#if defined(__x86_64__)
    constexpr unsigned leaf = 0x80000007, invariant_tsc = 1 << 8;
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(leaf, &a, &b, &c, &d) != 0 && (d & invariant_tsc) != 0;
#elif defined(__aarch64__)
    return true;
#else
    return false;
#endif
}

// How far the first use has come: one thread at a time takes a step.
enum class stage : uint8_t { begins, compares, is_done };
std::atomic_flag busy = ATOMIC_FLAG_INIT;
std::atomic<stage> at{stage::begins};
tick_scale first;

}  // namespace

std::atomic<bool> tick_clock::counts_{false};
tick_scale tick_clock::scale_;

bool tick_scale::between(const tick_scale &first, uint64_t ticks_now, int64_t now,
                         tick_scale *made) noexcept {
    constexpr double least = 0.01, most = 100;
    if (ticks_now <= first.ticks || now <= first.nanoseconds) {
        return false;
    }
    const double length =
        static_cast<double>(now - first.nanoseconds) / static_cast<double>(ticks_now - first.ticks);
    if (length < least || length > most) {
        return false;
    }
    made->ticks = ticks_now;
    made->nanoseconds = now;
    made->rate = static_cast<uint64_t>(length * 4294967296.0);
    return true;
}

// Best of several: the system may interrupt.
bool tick_clock::is_quicker() noexcept {
    constexpr int tries = 8, readings = 4;
    int64_t by_ticks = INT64_MAX, by_clock = INT64_MAX;
    uint64_t seen = 0;
    for (int i = 0; i < tries; ++i) {
        const int64_t begin = system_time();
        for (int j = 0; j < readings; ++j) {
            seen += ticks();
        }
        const int64_t middle = system_time();
        for (int j = 0; j < readings; ++j) {
            seen += static_cast<uint64_t>(system_time());
        }
        by_ticks = std::min(by_ticks, middle - begin);
        by_clock = std::min(by_clock, system_time() - middle);
    }
    return seen != 0 && by_ticks < by_clock;
}

// The counter is read before the clock, so the line through both runs ahead of the clock: who
// changes from the clock to the counter does not go back.
int64_t tick_clock::by_system() noexcept {
    constexpr int64_t compared = 20'000'000, most_apart = 20'000;  // ns
    if (at.load(std::memory_order_relaxed) == stage::is_done || busy.test_and_set()) {
        return system_time();
    }
    const int64_t begun = system_time();
    const uint64_t before = ticks();
    const int64_t now = system_time();
    if (now - begun > most_apart) {  // interrupted: the next time
        busy.clear();
        return now;
    }
    stage next = at.load(std::memory_order_relaxed);
    if (next == stage::begins) {
        first.ticks = before;
        first.nanoseconds = now;
        next = has_constant_rate() && is_quicker() ? stage::compares : stage::is_done;
    } else if (next == stage::compares && now - first.nanoseconds >= compared) {
        next = stage::is_done;
        if (tick_scale::between(first, before, now, &scale_)) {
            counts_.store(true, std::memory_order_release);
        }
    }
    at.store(next, std::memory_order_relaxed);
    busy.clear();
    return now;
}

}  // namespace cuda_nc
