#include "tools/perftest/support/statistics.hpp"

#include <gtest/gtest.h>

#include <random>

namespace cuda_nc::tools {
namespace {

TEST(summary, of_a_hundred_and_one_numbers) {
    std::vector<double> samples;
    for (int i = 100; i >= 0; --i) {
        samples.push_back(i);
    }
    const summary s = summarise(samples);
    EXPECT_EQ(s.samples, 101u);
    EXPECT_EQ(s.least, 0);
    EXPECT_EQ(s.p5, 5);
    EXPECT_EQ(s.p10, 10);
    EXPECT_EQ(s.p90, 90);
    EXPECT_EQ(s.median, 50);
    EXPECT_EQ(s.p95, 95);
    EXPECT_EQ(s.p99, 99);
    EXPECT_EQ(s.most, 100);
    EXPECT_EQ(s.median_low, 40);
    EXPECT_EQ(s.median_high, 60);
}

TEST(summary, of_few_numbers_knows_only_their_range) {
    const summary s = summarise({3, 1, 2});
    EXPECT_EQ(s.median, 2);
    EXPECT_EQ(s.p10, 1);
    EXPECT_EQ(s.p90, 3);
    EXPECT_EQ(s.median_low, 1);
    EXPECT_EQ(s.median_high, 3);
    EXPECT_EQ(summarise({}).samples, 0u);
}

// By its definition, 95 of 100 intervals hold the true median.
TEST(summary, the_interval_of_the_median_holds_it) {
    constexpr unsigned seed = 7;
    std::mt19937 random(seed);
    std::exponential_distribution<double> times(1.0);
    int held = 0;
    for (int run = 0; run < 1000; ++run) {
        std::vector<double> samples(51);
        for (double &one : samples) {
            one = times(random);
        }
        const summary s = summarise(samples);
        const double median = std::log(2.0);
        held += s.median_low <= median && median <= s.median_high;
    }
    EXPECT_GE(held, 930) << "seed " << seed;
    EXPECT_LE(held, 990) << "seed " << seed;
}

TEST(median_of, takes_the_upper_of_two_in_the_middle) {
    EXPECT_EQ(median_of({3, 1, 2}), 2);
    EXPECT_EQ(median_of({4, 1, 3, 2}), 3);
    EXPECT_EQ(median_of({7}), 7);
}

}  // namespace
}  // namespace cuda_nc::tools
