#include "ucs/gpu/arrival_rhythm.hpp"

#include <gtest/gtest.h>

#include <random>

namespace cuda_nc::gpu {
namespace {

constexpr uint64_t most = 50000;

struct heard {
    arrival_rhythm rhythm{most};
    uint64_t now = 1, bytes = 0;
    void after(uint64_t ns, bool alone = false) { rhythm.note(now += ns, bytes, alone); }
};

TEST(arrival_rhythm, a_few_orders_say_nothing) {
    heard one;
    EXPECT_FALSE(one.rhythm.pays());
    int orders = 0;
    for (; !one.rhythm.pays(); ++orders) {
        one.after(5000);
        ASSERT_LT(orders, 20);
    }
    EXPECT_GT(orders, 5);
}

TEST(arrival_rhythm, orders_are_waited_for_as_long_as_they_usually_take) {
    for (uint64_t distance : {300u, 3000u, 20000u, 35000u, 39000u}) {
        heard one;
        for (int i = 0; i < 100; ++i) {
            one.after(distance);
        }
        EXPECT_TRUE(one.rhythm.pays()) << distance;
        EXPECT_GE(one.rhythm.wait(), distance);
        EXPECT_LE(one.rhythm.wait(), std::max<uint64_t>(3 * distance, most / 64));
    }
}

// Messages of 1 MiB to and fro: 27 us by kernels, 38 to 44 without.
TEST(arrival_rhythm, a_kernel_is_tried_where_orders_would_come_sooner_with_it) {
    for (uint64_t distance : {41000u, 44000u, 47000u}) {
        heard one;
        for (int i = 0; i < 100; ++i) {
            one.after(distance);
        }
        EXPECT_FALSE(one.rhythm.pays()) << "with a kernel: " << distance;
        heard other;
        for (int i = 0; i < 100; ++i) {
            other.after(distance, true);
        }
        EXPECT_TRUE(other.rhythm.pays()) << distance;
        EXPECT_EQ(other.rhythm.wait(), most);
    }
}

// Such messages take 22 us by launches and 15 by a kernel, and a machine delays one of them now and
// then.
TEST(arrival_rhythm, long_orders_save_more_so_that_a_kernel_pays_at_longer_distances) {
    for (uint64_t bytes : {uint64_t{8}, uint64_t{1} << 20, uint64_t{1} << 40}) {
        heard one;
        one.bytes = bytes;
        for (int i = 0; i < 200; ++i) {
            one.after(i % 8 == 7 ? 70000 : 45000, true);
        }
        EXPECT_EQ(one.rhythm.pays(), bytes > 8) << bytes;
        heard slow;
        slow.bytes = bytes;
        for (int i = 0; i < 200; ++i) {
            slow.after(60000, true);
        }
        EXPECT_FALSE(slow.rhythm.pays()) << bytes;
    }
}

TEST(arrival_rhythm, no_kernel_is_tried_where_it_would_leave_before) {
    heard one;
    for (int i = 0; i < 100; ++i) {
        one.after(most, true);
    }
    EXPECT_FALSE(one.rhythm.pays());
    // Distances that are met anyway count as they are.
    for (int i = 0; i < 100; ++i) {
        one.after(26000, true);
    }
    EXPECT_TRUE(one.rhythm.pays());
    EXPECT_EQ(one.rhythm.wait(), most);
}

TEST(arrival_rhythm, rare_orders_do_not_pay_until_they_come_often_again) {
    heard one;
    for (int i = 0; i < 40; ++i) {
        one.after(5000);
    }
    one.after(1000000000);
    EXPECT_TRUE(one.rhythm.pays()) << "one pause says little";
    for (int i = 0; i < 100; ++i) {
        one.after(1000000000);
    }
    EXPECT_FALSE(one.rhythm.pays());
    int orders = 0;
    for (; !one.rhythm.pays(); ++orders) {
        one.after(5000);
        ASSERT_LT(orders, 60);
    }
    EXPECT_GT(orders, 3);
}

// A few messages at a time, and a long pause: most of a halo's orders would find no kernel. Many at
// a time: it is there for these, and does not wait for the next ones.
TEST(arrival_rhythm, in_bursts_it_waits_for_the_next_of_the_burst_alone) {
    for (int burst : {1, 2, 26}) {
        heard one;
        int paid = 0, orders = 0;
        for (int i = 0; i < 50; ++i) {
            one.after(100000);
            for (int k = 1; k < burst; ++k, ++orders) {
                one.after(1500);
                if (i > 5 && one.rhythm.pays()) {
                    ++paid;
                    EXPECT_LE(one.rhythm.wait(), 4000u);
                }
            }
        }
        if (burst < 3) {
            EXPECT_EQ(paid, 0) << burst;
        } else {
            EXPECT_GT(paid, orders * 3 / 4) << burst;
        }
    }
}

// A burst's first order may wait for a kernel; one that comes by itself may not.
TEST(arrival_rhythm, bursts_are_known_by_how_soon_most_orders_come) {
    for (uint64_t distance : {1500u, 7000u, 12000u, 30000u}) {
        for (int burst : {2, 6, 26}) {
            heard one;
            for (int i = 0; i < 50; ++i) {
                one.after(200000);
                for (int k = 1; k < burst; ++k) {
                    one.after(distance);
                }
            }
            EXPECT_EQ(one.rhythm.in_bursts(), burst > 2 && distance <= 12000)
                << distance << " " << burst;
        }
    }
    heard even;  // one after the other
    for (int i = 0; i < 100; ++i) {
        even.after(30000);
    }
    EXPECT_TRUE(even.rhythm.pays());
    EXPECT_FALSE(even.rhythm.in_bursts());
}

// Two faces a step: each second order comes at the edge of what is waited for. A kernel that is
// missed now and then costs more than it saves.
TEST(arrival_rhythm, two_at_a_time_with_a_pause_as_long_as_a_kernel_waits_do_not_pay) {
    for (uint64_t pause : {33000u, 41000u, 60000u, 1000000u}) {
        heard one;
        std::mt19937 random(1);
        for (int i = 0; i < 100; ++i) {
            one.after(pause + random() % 16000);
            EXPECT_FALSE(one.rhythm.pays()) << pause << " " << i;
            one.after(5000);
            EXPECT_FALSE(one.rhythm.in_bursts()) << pause << " " << i;
        }
    }
}

// Messages that go to and fro: all that the kernel waits for is known, not just its bound.
TEST(arrival_rhythm, even_distances_up_to_what_is_sure_pay) {
    for (uint64_t distance : {19000u, 24000u, 30000u, 37000u, 39000u}) {
        heard one;
        for (int i = 0; i < 100; ++i) {
            one.after(distance);
        }
        EXPECT_TRUE(one.rhythm.pays()) << distance;
        one.after(200000);
        EXPECT_TRUE(one.rhythm.pays()) << "one pause says little: " << distance;
    }
}

// The first of a set is asked about before the others are noted.
TEST(arrival_rhythm, orders_that_come_together_are_a_burst_where_they_are_several) {
    for (size_t together : {1u, 2u, 4u, 6u}) {
        heard one;
        bool in_bursts = false;
        for (int i = 0; i < 100; ++i) {
            one.after(30000);
            in_bursts = one.rhythm.in_bursts();
            one.rhythm.note_others(together - 1);
        }
        EXPECT_EQ(in_bursts, together > 2) << together;
    }
}

}  // namespace
}  // namespace cuda_nc::gpu
