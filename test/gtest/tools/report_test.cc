#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tools/perftest/message_report.hpp"
#include "tools/perftest/report.hpp"

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

TEST(message_report, csv_has_a_line_a_row_and_quotes_texts) {
    message_row good, bad;
    good.test = "latency";
    good.layout = "a,\"b\"";
    good.bytes = 8;
    good.time = summarise({1e-6, 2e-6, 3e-6});
    good.contiguous = summarise({1e-6});
    good.verified = true;
    bad.error = "WRONG";
    const std::string text = message_csv({to_json(good), to_json(bad)});
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
    EXPECT_NE(text.find("\"a,\"\"b\"\"\""), std::string::npos) << text;
    EXPECT_NE(text.find(",2.0000,"), std::string::npos) << text;
    EXPECT_NE(text.find("\"WRONG\""), std::string::npos) << text;
    EXPECT_DOUBLE_EQ(to_json(good)["ratio"].get<double>(), 2);
}

}  // namespace
}  // namespace cuda_nc::tools
