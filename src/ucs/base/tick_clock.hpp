// A steady clock for what asks for the time with each message.
//
// The system's clock takes 40 to 48 ns on the hosts of bench/results, latency, and 325 on one of
// them: as much as the rest of a step. The CPU's counter of ticks takes 19 to 24, and is read in
// its place once both have been compared for a while. Where the counter is not one of constant
// rate, Linux does not trust it, or it is no quicker to read, the system's clock stays.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace cuda_nc {

// Nanoseconds of ticks: a line through two readings of both clocks.
struct tick_scale {
    uint64_t ticks = 0;  // at `nanoseconds`
    int64_t nanoseconds = 0;
    uint64_t rate = 0;  // nanoseconds in a tick, times 2^32

    // A counter that is a little behind, another CPU's for instance, counts as standing still.
    int64_t at(uint64_t now) const noexcept {
        const auto passed = static_cast<int64_t>(now - ticks);
        using wide = unsigned __int128;
        return passed <= 0
                   ? nanoseconds
                   : nanoseconds +
                         static_cast<int64_t>(wide{static_cast<uint64_t>(passed)} * rate >> 32);
    }
    // From `first` until `ticks_now`, which was `now`: false where the numbers make no sense, that
    // is not 0.01 to 100 ticks a nanosecond.
    static bool between(const tick_scale &first, uint64_t ticks_now, int64_t now,
                        tick_scale *made) noexcept;
};

// A clock as std::chrono has them. Goes back only where a thread is interrupted while another one
// changes from the clock to the counter, by less than a microsecond.
class tick_clock {
  public:
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<tick_clock>;
    static constexpr bool is_steady = true;

    static time_point now() noexcept {
        return time_point(
            duration(counts_.load(std::memory_order_acquire) ? scale_.at(ticks()) : by_system()));
    }

  private:
    static uint64_t ticks() noexcept {
#if defined(__x86_64__)
        return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
        uint64_t value;
        asm volatile("mrs %0, cntvct_el0" : "=r"(value));
        return value;
#else
        return 0;
#endif
    }
    static int64_t by_system() noexcept;
    static bool is_quicker() noexcept;

    static std::atomic<bool> counts_;  // the counter is in use, and scale_ does not change any more
    static tick_scale scale_;
};

}  // namespace cuda_nc
