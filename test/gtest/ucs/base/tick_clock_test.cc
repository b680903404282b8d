#include "ucs/base/tick_clock.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace cuda_nc {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

TEST(tick_scale, is_a_line_through_two_readings) {
    const tick_scale first = {1000, 5000, 0};
    tick_scale made;
    // 2.5 ticks a nanosecond.
    ASSERT_TRUE(tick_scale::between(first, 1000 + 2'500'000, 5000 + 1'000'000, &made));
    EXPECT_EQ(5000 + 1'000'000, made.at(1000 + 2'500'000));
    EXPECT_NEAR(1'001'000 + 5000, static_cast<double>(made.at(1000 + 2'502'500)), 1);
    // A year later, to a millionth.
    constexpr double year = 365.0 * 24 * 3600 * 1e9;
    const auto later = static_cast<uint64_t>(year * 2.5);
    EXPECT_NEAR(year, static_cast<double>(made.at(made.ticks + later)), year / 1e6);
}

TEST(tick_scale, stands_still_for_a_counter_that_is_behind) {
    tick_scale made;
    ASSERT_TRUE(tick_scale::between({0, 0, 0}, 1'000'000, 1'000'000, &made));
    EXPECT_EQ(1'000'000, made.at(999'000));
    EXPECT_EQ(1'000'000, made.at(0));
}

TEST(tick_scale, refuses_readings_that_make_no_sense) {
    tick_scale made;
    EXPECT_FALSE(tick_scale::between({1000, 1000, 0}, 1000, 2000, &made));  // stands still
    EXPECT_FALSE(tick_scale::between({1000, 1000, 0}, 900, 2000, &made));   // goes back
    EXPECT_FALSE(tick_scale::between({1000, 1000, 0}, 2000, 1000, &made));  // so does the clock
    EXPECT_FALSE(tick_scale::between({0, 0, 0}, 1, 1000, &made));           // too slow
    EXPECT_FALSE(tick_scale::between({0, 0, 0}, 1'000'000, 1000, &made));   // too quick
}

constexpr std::chrono::microseconds unsteady{50};  // while it changes to the counter

TEST(tick_clock, goes_with_the_system_s_clock_and_not_back) {
    const auto begun = steady_clock::now();
    const tick_clock::time_point first = tick_clock::now();
    tick_clock::time_point before = first;
    while (steady_clock::now() - begun < milliseconds(200)) {
        const tick_clock::time_point now = tick_clock::now();
        ASSERT_LE(before, now + unsteady);
        before = now;
    }
    const auto by_system = steady_clock::now() - begun;
    const auto by_ticks = tick_clock::now() - first;
    // Not more than what a preemption between two readings can do.
    EXPECT_GT(by_ticks, by_system - milliseconds(50));
    EXPECT_LT(by_ticks, by_system + milliseconds(50));
}

TEST(tick_clock, serves_many_threads_from_the_first_call_on) {
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
        threads.emplace_back([&] {
            const auto begun = steady_clock::now();
            tick_clock::time_point before = tick_clock::now();
            while (steady_clock::now() - begun < milliseconds(100)) {
                const tick_clock::time_point now = tick_clock::now();
                wrong += now + unsteady < before ? 1 : 0;
                before = now;
            }
        });
    }
    for (std::thread &one : threads) {
        one.join();
    }
    EXPECT_EQ(0, wrong.load());
}

}  // namespace
}  // namespace cuda_nc
