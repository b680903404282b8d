#include "ucs/base/tick_clock.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

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

// Where Linux has found that the processors' counters disagree it takes another clock. Where it
// does not say, in sandboxes for instance, it is trusted.
bool is_trusted() noexcept {
    FILE *file =
        std::fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
    if (file == nullptr) {
        return true;
    }
    char name[32] = "";
    const bool is_read = std::fgets(name, sizeof(name), file) != nullptr;
    std::fclose(file);
    name[std::strcspn(name, "\n")] = '\0';
    return is_read && (std::strcmp(name, "tsc") == 0 || std::strcmp(name, "arch_sys_counter") == 0);
}

// How far the first use has come: one thread at a time takes a step.
enum class stage : uint8_t { begins, starts, compares, is_done };
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
// changes from the clock to the counter does not go back by more than what the line's rate is wrong
// by.
int64_t tick_clock::by_system() noexcept {
    constexpr int64_t compared = 20'000'000, most_apart = 2'000;  // ns
    stage now_at = at.load(std::memory_order_relaxed);
    if (now_at == stage::is_done || busy.test_and_set()) {
        return system_time();
    }
    now_at = at.load(std::memory_order_relaxed);
    if (now_at == stage::begins) {
        now_at =
            has_constant_rate() && is_trusted() && is_quicker() ? stage::starts : stage::is_done;
    }
    const int64_t begun = system_time();
    int64_t now = begun;
    if (now_at != stage::is_done) {
        const uint64_t before = ticks();
        now = system_time();
        if (now - begun > most_apart) {
            // Interrupted: the next time.
        } else if (now_at == stage::starts) {
            first.ticks = before;
            first.nanoseconds = now;
            now_at = stage::compares;
        } else if (now - first.nanoseconds >= compared) {
            now_at = stage::is_done;
            if (tick_scale::between(first, before, now, &scale_)) {
                counts_.store(true, std::memory_order_release);
            }
        }
    }
    at.store(now_at, std::memory_order_relaxed);
    busy.clear();
    return now;
}

}  // namespace cuda_nc
