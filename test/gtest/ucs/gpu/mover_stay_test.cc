// When a mover's kernel has waited for long enough, and the pulse by which it knows of its process.
#include "ucs/gpu/mover_stay.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "ucs/gpu/mover_pulse.hpp"

namespace cuda_nc::gpu {
namespace {

constexpr uint64_t idle = 50000, away = 5000;

class mover_stay_test : public testing::Test {
  protected:
    mover_stay_test() { stay_.begin(1000, idle, away, 0); }
    // The pulse stands still.
    bool is_over_at(uint64_t now) {
        stay_.note_pulse(now, pulse_);
        return stay_.is_over(now);
    }
    bool is_over_with_a_beat_at(uint64_t now) {
        pulse_ += uint64_t{1} << 32;
        return is_over_at(now);
    }
    bool is_over_with_a_post_at(uint64_t now) {
        ++pulse_;
        return is_over_at(now);
    }

    mover_stay stay_;
    uint64_t pulse_ = 0;
};

TEST_F(mover_stay_test, lasts_for_the_idle_time_while_the_process_is_in_ucx) {
    for (uint64_t now = 1000; now <= 1000 + idle; now += 1000) {
        EXPECT_FALSE(is_over_with_a_beat_at(now)) << now;
    }
    EXPECT_TRUE(is_over_with_a_beat_at(1001 + idle));
}

TEST_F(mover_stay_test, begins_anew_with_each_order) {
    EXPECT_FALSE(is_over_with_a_beat_at(1000 + idle));
    stay_.note_order(1000 + idle);
    EXPECT_FALSE(is_over_with_a_beat_at(1000 + 2 * idle));
    EXPECT_TRUE(is_over_with_a_beat_at(1001 + 2 * idle));
}

TEST_F(mover_stay_test, ends_soon_after_the_process_has_left_ucx) {
    EXPECT_FALSE(is_over_with_a_beat_at(20000));
    EXPECT_FALSE(is_over_at(20000 + away));
    EXPECT_TRUE(is_over_at(20001 + away));
    EXPECT_FALSE(is_over_with_a_beat_at(20002 + away)) << "it is back";
}

TEST_F(mover_stay_test, does_not_end_right_after_an_order) {
    EXPECT_FALSE(is_over_with_a_beat_at(2000));
    stay_.note_order(20000);
    EXPECT_FALSE(is_over_with_a_beat_at(20001));
    EXPECT_FALSE(is_over_at(20001 + away));
    EXPECT_TRUE(is_over_at(20002 + away));
}

// Not all that gives orders beats: fragments do not.
TEST_F(mover_stay_test, is_the_idle_time_where_the_pulse_stands_still_since_the_last_order) {
    EXPECT_FALSE(is_over_with_a_beat_at(2000));
    stay_.note_order(20000);
    EXPECT_FALSE(is_over_at(20000 + idle));
    EXPECT_TRUE(is_over_at(20001 + idle));
}

// The process packs, posts a receive and waits in UCX, where nobody of ours is called.
TEST_F(mover_stay_test, is_the_idle_time_where_posts_alone_came_since_the_last_order) {
    stay_.note_order(20000);
    EXPECT_FALSE(is_over_with_a_post_at(21000));
    EXPECT_FALSE(is_over_at(21001 + away));
    EXPECT_FALSE(is_over_at(20000 + idle));
    EXPECT_TRUE(is_over_at(20001 + idle));
}

// The kernel looks now and then: a post may hide progress that came before it.
TEST_F(mover_stay_test, sees_progress_behind_which_a_post_came) {
    stay_.note_order(20000);
    pulse_ += uint64_t{1} << 32;
    EXPECT_FALSE(is_over_with_a_post_at(21000));
    EXPECT_FALSE(is_over_at(21000 + away));
    EXPECT_TRUE(is_over_at(21001 + away));
}

// It posts many messages, and calls no progress meanwhile.
TEST_F(mover_stay_test, lasts_while_a_process_that_was_in_ucx_posts) {
    EXPECT_FALSE(is_over_with_a_beat_at(20000));
    EXPECT_FALSE(is_over_with_a_post_at(20000 + away));
    EXPECT_FALSE(is_over_at(20000 + 2 * away));
    EXPECT_TRUE(is_over_at(20001 + 2 * away));
}

// Where messages are none of UCX's, or there were too many movers.
TEST_F(mover_stay_test, is_the_idle_time_where_there_has_never_been_a_pulse) {
    EXPECT_FALSE(is_over_at(1000 + idle));
    EXPECT_TRUE(is_over_at(1001 + idle));
}

// Messages of UCX's own have come before, and packs come now: no progress of ours says that the
// process waits.
TEST_F(mover_stay_test, is_the_idle_time_where_the_pulse_has_not_changed_since_the_order_before) {
    pulse_ = uint64_t{7} << 32 | 3;
    stay_.begin(1000, idle, away, pulse_);
    EXPECT_FALSE(is_over_at(1000 + idle));
    EXPECT_TRUE(is_over_at(1001 + idle));
    stay_.begin(1000, idle, away, pulse_);
    EXPECT_FALSE(is_over_with_a_post_at(1000 + idle));
    EXPECT_TRUE(is_over_at(1001 + idle));
}

TEST_F(mover_stay_test, ends_soon_where_it_has_changed_before_the_launch) {
    pulse_ = uint64_t{7} << 32;
    stay_.begin(1000, idle, away, uint64_t{6} << 32);
    EXPECT_FALSE(is_over_at(1000));
    EXPECT_FALSE(is_over_at(1000 + away));
    EXPECT_TRUE(is_over_at(1001 + away));
}

// The GPU's clock is read by several threads, and not in order.
TEST_F(mover_stay_test, a_time_before_the_beginning_is_none) {
    EXPECT_FALSE(is_over_at(0));
    EXPECT_FALSE(is_over_with_a_beat_at(0));
}

TEST(mover_pulse, beats_in_every_word_until_it_is_removed) {
    uint64_t first = 0, second = 0;
    add_pulse(&first);
    add_pulse(&second);
    beat_pulses(beat::progress);
    const uint64_t after_one = first;
    EXPECT_NE(after_one, 0u);
    EXPECT_EQ(second, after_one);
    remove_pulse(&first);
    beat_pulses(beat::progress);
    EXPECT_EQ(first, after_one);
    EXPECT_NE(second, after_one);
    remove_pulse(&second);
}

TEST(mover_pulse, says_whether_the_process_progresses_and_never_the_same_twice) {
    uint64_t word = 0, before = 0;
    add_pulse(&word);
    for (const beat which : {beat::post, beat::post, beat::progress, beat::progress, beat::post}) {
        beat_pulses(which);
        EXPECT_NE(word, before);
        EXPECT_EQ(word >> 32 != before >> 32, which == beat::progress);
        before = word;
    }
    remove_pulse(&word);
}

TEST(mover_pulse, there_may_be_too_many) {
    std::vector<uint64_t> words(1000, 0);
    for (uint64_t &word : words) {
        add_pulse(&word);
    }
    beat_pulses(beat::progress);
    const uint64_t beaten = words.front();
    EXPECT_NE(beaten, 0u);
    EXPECT_EQ(words.back(), 0u);
    for (uint64_t &word : words) {
        remove_pulse(&word);
    }
    beat_pulses(beat::progress);
    EXPECT_EQ(words.front(), beaten);
}

TEST(mover_pulse, nobody_writes_to_a_word_that_was_removed) {
    std::atomic<bool> ends{false};
    std::thread beats([&] {
        while (!ends) {
            beat_pulses(beat::post);
        }
    });
    for (int i = 0; i < 1000; ++i) {
        auto word = std::make_unique<uint64_t>(0);
        add_pulse(word.get());
        std::this_thread::yield();
        remove_pulse(word.get());  // a sanitizer sees whether it is written to below
    }
    ends = true;
    beats.join();
}

}  // namespace
}  // namespace cuda_nc::gpu
