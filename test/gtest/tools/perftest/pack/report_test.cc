#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tools/perftest/message/report.hpp"
#include "tools/perftest/pack/report.hpp"

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

result_row packed_row() {
    result_row row;
    row.layout = "v";
    row.bytes = 8;
    row.time = summarise({3e-6});
    row.plain_copy = summarise({1e-6});
    return row;
}

TEST(pack_report, times_are_set_against_both_copies) {
    result_file file;
    file.rows = {packed_row(), packed_row()};
    file.rows[0].touched = 96;
    file.rows[0].sector_copy = summarise({2e-6});
    const nlohmann::json rows = nlohmann::json::parse(to_json(file))["rows"];
    EXPECT_DOUBLE_EQ(rows[0]["ratio"].get<double>(), 3);
    EXPECT_DOUBLE_EQ(rows[0]["sector_ratio"].get<double>(), 1.5);
    EXPECT_DOUBLE_EQ(rows[0]["sector_copy"]["median_us"].get<double>(), 2);
    EXPECT_EQ(rows[0]["touched_bytes"], 96);
    EXPECT_FALSE(rows[1].contains("sector_ratio") || rows[1].contains("sector_copy"));
    const std::string text = to_csv(file);
    EXPECT_NE(text.find(",ratio,sector_copy_median_us,sector_ratio,"), std::string::npos) << text;
    EXPECT_NE(text.find(",3.0000,2.000,1.5000,"), std::string::npos) << text;
    EXPECT_NE(text.find(",3.0000,,,"), std::string::npos) << text;
}

TEST(pack_report, files_tell_how_much_of_the_gpu_was_used) {
    result_file file;
    file.rows = {packed_row()};
    file.rows[0].max_sms = 8;
    EXPECT_EQ(nlohmann::json::parse(to_json(file))["rows"][0]["max_sms"], 8);
    const std::string text = to_csv(file);
    EXPECT_NE(text.find(",misalign,max_sms,min_us,"), std::string::npos) << text;
    EXPECT_NE(text.find(",0,8,3.000,"), std::string::npos) << text;
}

TEST(pack_report, files_tell_the_bytes_of_tables) {
    result_file file;
    file.rows = {packed_row()};
    file.rows[0].table_bytes = 4711;
    EXPECT_EQ(nlohmann::json::parse(to_json(file))["rows"][0]["table_bytes"], 4711);
    const std::string text = to_csv(file);
    EXPECT_NE(text.find(",table_bytes\n"), std::string::npos) << text;
    EXPECT_NE(text.find(",4711\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace cuda_nc::tools
