#include <gtest/gtest.h>

#include <random>

#include "tools/perftest/compare/compare.hpp"
#include "tools/perftest/support/results.hpp"
#include "tools/perftest/support/run_error.hpp"

namespace cuda_nc::tools {
namespace {

using nlohmann::json;

json row(const std::string &layout, const std::vector<double> &samples) {
    return {{"test", "latency"},
            {"layout", layout},
            {"bytes", 8},
            {"transport", "y"},
            {"time", times_of(summarise(samples))}};
}

json file(const std::vector<json> &rows) {
    return {{"rows", rows}};
}

// Times near `middle` with bursts, as of a machine that others use.
std::vector<double> noisy(double middle, unsigned seed) {
    std::mt19937 random(seed);
    std::exponential_distribution<double> burst(1.0);
    std::vector<double> samples;
    for (int i = 0; i < 51; ++i) {
        samples.push_back(middle * (1 + 0.05 * burst(random)));
    }
    return samples;
}

verdict of(const json &a, const json &b, const compare_options &options = {}) {
    const std::vector<compared_row> rows = compare_results(file({a}), file({b}), options);
    EXPECT_EQ(rows.size(), 1u);
    return rows.at(0).is;
}

TEST(compare, what_differs_by_more_than_noise_is_faster_or_slower) {
    const json old_one = row("v", noisy(1e-6, 1));
    EXPECT_EQ(of(old_one, row("v", noisy(1e-6, 2))), verdict::same);
    EXPECT_EQ(of(old_one, row("v", noisy(1.2e-6, 3))), verdict::slower);
    EXPECT_EQ(of(old_one, row("v", noisy(0.8e-6, 4))), verdict::faster);
    EXPECT_EQ(of(old_one, old_one), verdict::same);
}

TEST(compare, equal_machines_give_no_false_alarm) {
    int alarms = 0;
    for (unsigned seed = 0; seed < 400; ++seed) {
        const verdict is = of(row("v", noisy(1e-6, 2 * seed)), row("v", noisy(1e-6, 2 * seed + 1)));
        alarms += is != verdict::same;
    }
    EXPECT_LE(alarms, 4);
}

// The second file was taken while the machine was busy: half of its samples are twice as long.
TEST(compare, a_busy_machine_makes_the_verdict_unclear) {
    std::vector<double> busy = noisy(1e-6, 5);
    for (size_t i = 0; i < busy.size(); ++i) {
        busy[i] *= i % 8 < 5 ? 2 : 1;
    }
    EXPECT_EQ(of(row("v", noisy(1e-6, 6)), row("v", busy)), verdict::unclear);
}

TEST(compare, few_samples_prove_little) {
    EXPECT_EQ(of(row("v", {1e-6, 1.5e-6, 1.1e-6}), row("v", {1.2e-6, 1.4e-6, 1.0e-6})),
              verdict::unclear);
}

TEST(compare, the_threshold_is_the_users) {
    compare_options options;
    options.threshold = 0.3;
    EXPECT_EQ(of(row("v", noisy(1e-6, 1)), row("v", noisy(1.2e-6, 3)), options), verdict::same);
}

TEST(compare, a_result_that_is_gone_is_missing_and_a_new_one_added) {
    json broken = row("a", {1e-6});
    broken.erase("time");
    broken["error"] = "WRONG in message 0";
    const auto rows = compare_results(file({row("a", {1e-6}), row("b", {1e-6}), row("c", {1e-6})}),
                                      file({row("c", {1e-6}), broken, row("d", {1e-6})}), {});
    ASSERT_EQ(rows.size(), 4u);
    EXPECT_EQ(rows[0].is, verdict::missing);
    EXPECT_EQ(rows[0].remark, "WRONG in message 0");
    EXPECT_EQ(rows[1].is, verdict::missing);
    EXPECT_EQ(rows[2].is, verdict::same);
    EXPECT_EQ(rows[3].is, verdict::added);
    EXPECT_EQ(of(broken, row("a", {1e-6})), verdict::added);
    EXPECT_EQ(of(broken, broken), verdict::same);
}

TEST(compare, rows_are_told_apart_by_what_they_measure) {
    json other = row("v", {2e-6});
    other["transport"] = "n";
    const json both = file({row("v", {1e-6}), other});
    for (const compared_row &one : compare_results(both, both, {})) {
        EXPECT_EQ(one.is, verdict::same) << one.key;
    }
    compare_options any;
    any.any_transport = true;
    EXPECT_THROW(compare_results(both, both, any), run_error);
    EXPECT_EQ(of(row("v", {1e-6}), other, any), verdict::slower);
}

TEST(compare, runs_on_part_of_a_gpu_are_rows_of_their_own) {
    json all = row("v", {1e-6}), part = all;
    all["max_sms"] = 0;
    part["max_sms"] = 8;
    EXPECT_EQ(of(row("v", {1e-6}), all), verdict::same);
    EXPECT_EQ(of(part, part), verdict::same);
    const auto rows = compare_results(file({all}), file({part}), {});
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[0].is, verdict::missing);
    EXPECT_EQ(rows[1].is, verdict::added);
    EXPECT_NE(rows[1].key.find("max_sms=8"), std::string::npos) << rows[1].key;
}

TEST(compare, relative_times_cancel_the_speed_of_the_machine) {
    auto with_reference = [](double time, double reference) {
        json one = row("v", noisy(time, 1));
        one["contiguous"] = times_of(summarise(noisy(reference, 1)));
        return one;
    };
    compare_options relative;
    relative.field = "relative";
    EXPECT_EQ(of(with_reference(2e-6, 1e-6), with_reference(6e-6, 3e-6), relative), verdict::same);
    EXPECT_EQ(of(with_reference(2e-6, 1e-6), with_reference(4e-6, 1e-6), relative),
              verdict::slower);
}

TEST(compare, files_without_intervals_are_read) {
    auto old_row = [](double median) {
        json one = {{"layout", "v"}, {"direction", "pack"}};
        one["time"] = {{"min_us", median * 0.95}, {"median_us", median}, {"p95_us", median * 1.1}};
        return one;
    };
    EXPECT_EQ(of(old_row(10), old_row(10.1)), verdict::same);
    EXPECT_EQ(of(old_row(10), old_row(20)), verdict::slower);
    EXPECT_EQ(of(old_row(10), old_row(11)), verdict::unclear);
}

TEST(compare, other_files_are_refused) {
    EXPECT_THROW(compare_results(json::array(), file({}), {}), run_error);
    EXPECT_THROW(compare_results(file({}), {{"rows", 3}}, {}), run_error);
    EXPECT_THROW(compare_results(file({{{"a", 1}}}), file({}), {}), run_error);
    EXPECT_THROW(compare_results(file({3}), file({}), {}), run_error);
    json strange = row("v", {1e-6});
    strange["time"]["min_us"] = "soon";
    EXPECT_THROW(compare_results(file({strange}), file({strange}), {}), run_error);
}

TEST(compare, files_of_different_modes_are_refused) {
    json pack = file({row("v", {1e-6})}), p2p = pack;
    pack["mode"] = "pack";
    p2p["mode"] = "p2p";
    EXPECT_THROW(compare_results(pack, p2p, {}), run_error);
    EXPECT_EQ(compare_results(p2p, p2p, {}).size(), 1u);
}

TEST(compare, a_field_that_no_row_has_is_refused) {
    const json some = file({row("v", {1e-6})});
    for (const char *field : {"plain_copy", "contiguous", "relative"}) {
        compare_options options;
        options.field = field;
        EXPECT_THROW(compare_results(some, some, options), run_error) << field;
    }
}

}  // namespace
}  // namespace cuda_nc::tools
