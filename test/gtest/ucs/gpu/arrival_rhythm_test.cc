#include "ucs/gpu/arrival_rhythm.hpp"

#include <gtest/gtest.h>

namespace cuda_nc::gpu {
namespace {

constexpr uint64_t most = 50000;

TEST(arrival_rhythm, first_orders_are_taken_and_waited_for) {
    arrival_rhythm one(most);
    EXPECT_TRUE(one.pays());
    EXPECT_EQ(one.wait(), most);
}

TEST(arrival_rhythm, orders_close_together_are_waited_for_shortly) {
    arrival_rhythm one(most);
    uint64_t now = 1;
    for (int i = 0; i < 100; ++i) {
        one.note(now += 3000);
    }
    EXPECT_TRUE(one.pays());
    EXPECT_GE(one.wait(), 4 * 2500u);
    EXPECT_LE(one.wait(), 4 * 3500u);
    for (int i = 0; i < 100; ++i) {
        one.note(now += 10);
    }
    EXPECT_EQ(one.wait(), most / 8) << "the CPU may be held up for a moment";
}

TEST(arrival_rhythm, rare_orders_do_not_pay_until_they_come_often_again) {
    arrival_rhythm one(most);
    uint64_t now = 1;
    one.note(now);
    one.note(now += 1000000000);
    EXPECT_TRUE(one.pays()) << "one pause says little";
    for (int i = 0; i < 20; ++i) {
        one.note(now += 1000000000);
    }
    EXPECT_FALSE(one.pays());
    EXPECT_EQ(one.wait(), most);
    int orders = 0;
    for (; !one.pays(); ++orders) {
        one.note(now += 5000);
        ASSERT_LT(orders, 20);
    }
    EXPECT_GT(orders, 3);
}

}  // namespace
}  // namespace cuda_nc::gpu
