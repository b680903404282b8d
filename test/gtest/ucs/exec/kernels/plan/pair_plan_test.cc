#include "ucs/exec/kernels/plan/pair_plan.hpp"

#include <gtest/gtest.h>

#include "ucs/gpu/device.hpp"

namespace cuda_nc::exec::test {
namespace {

constexpr unsigned sms = 132;

uint64_t warps(const pair_plan &plan) {
    return uint64_t{plan.grid} * plan.threads / 32;
}

TEST(pair_plan, every_pair_has_a_warp_and_every_warp_as_many_pairs) {
    for (uint64_t count : {1ull, 2ull, 15ull, 256ull, 257ull, 4224ull, 4225ull, 65536ull, 135168ull,
                           135169ull, 1ull << 20, 1ull << 33, 1ull << 50}) {
        for (unsigned most : {0u, 1u, 16u, 200u}) {
            for (bool tells : {false, true}) {
                const pair_plan plan = plan_pairs(count, sms, most, tells);
                SCOPED_TRACE(std::to_string(count) + " pairs, at most " + std::to_string(most));
                ASSERT_GE(plan.grid, 1u);
                ASSERT_TRUE(plan.threads >= 32 && plan.threads <= 1024 && plan.threads % 32 == 0);
                ASSERT_TRUE(plan.run >= 1 && plan.run <= 32);
                const uint64_t teams = warps(plan) >> plan.parts_log2;
                ASSERT_GE(teams, 1u);
                ASSERT_TRUE(plan.run == 1 || plan.parts_log2 == 0);
                const unsigned allowed = most != 0 && most < sms ? most : sms;
                ASSERT_LE(warps(plan), uint64_t{allowed} * 32 + plan.threads / 32);
                if (most != 0) {
                    ASSERT_LE(plan.grid, allowed);
                }
                ASSERT_LE(plan.tells ? plan.grid : 0, gpu::end_words::most);
                ASSERT_TRUE(tells || !plan.tells);
                // The busiest warp has few runs more than the mean.
                const uint64_t runs = (count - 1) / plan.run + 1;
                const uint64_t turns = (runs - 1) / teams + 1;
                if (count > most_told_pairs) {
                    ASSERT_LE(turns * plan.run * teams, count + count / 8 + 40 * teams);
                }
            }
        }
    }
}

TEST(pair_plan, long_lists_fill_the_machine_and_short_ones_spread) {
    EXPECT_GE(warps(plan_pairs(65536, sms, 0, true)), 4000u);
    EXPECT_EQ(plan_pairs(65536, sms, 0, true).run, 16u) << "one turn";
    EXPECT_EQ(plan_pairs(4000, sms, 0, false).run, 1u);
    EXPECT_EQ(plan_pairs(4000, sms, 0, false).parts_log2, 0u);
    EXPECT_EQ(plan_pairs(1000, sms, 0, false).parts_log2, 2u) << "a piece of 4 KiB for each warp";
    EXPECT_GE(warps(plan_pairs(1000, sms, 0, false)), 4000u);
    EXPECT_EQ(plan_pairs(64, sms, 0, true).parts_log2, 2u);
    EXPECT_EQ(plan_pairs(256, sms, 0, true).parts_log2, 0u);
    EXPECT_GE(plan_pairs(528, sms, 0, false).grid, 128u);
}

TEST(pair_plan, short_lists_tell_of_their_end) {
    for (uint64_t count = 1; count <= most_told_pairs; ++count) {
        EXPECT_TRUE(plan_pairs(count, sms, 0, true).tells) << count;
    }
    EXPECT_EQ(plan_pairs(1, sms, 0, true).grid, 1u);
    EXPECT_LE(plan_pairs(4, sms, 0, true).grid, 4u);
    EXPECT_FALSE(plan_pairs(most_told_pairs + 1, sms, 0, true).tells);
    EXPECT_TRUE(plan_pairs(65536, sms, 16, true).tells) << "few thread blocks anyway";
}

}  // namespace
}  // namespace cuda_nc::exec::test
