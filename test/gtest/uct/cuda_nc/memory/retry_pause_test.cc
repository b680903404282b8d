#include "uct/cuda_nc/memory/retry_pause.hpp"

#include <gtest/gtest.h>

namespace cuda_nc::uct {
namespace {

using std::chrono::seconds;

class retry_pause_test : public testing::Test {
  protected:
    retry_pause pause_;
    retry_pause::clock::time_point now_ = retry_pause::clock::now();
};

TEST_F(retry_pause_test, lasts_a_second_at_first_and_a_minute_in_the_end) {
    EXPECT_FALSE(pause_.is_on(now_));
    for (int length : {1, 2, 4, 8, 16, 32, 64, 64, 64}) {
        pause_.begin(now_);
        EXPECT_TRUE(pause_.is_on(now_));
        now_ += seconds(length) - std::chrono::milliseconds(1);
        EXPECT_TRUE(pause_.is_on(now_)) << length;
        now_ += std::chrono::milliseconds(1);
        EXPECT_FALSE(pause_.is_on(now_)) << length;
        now_ += seconds(1000);  // the next message comes late
    }
}

TEST_F(retry_pause_test, counts_what_fails_together_once) {
    for (int i = 0; i < 10; ++i) {
        pause_.begin(now_);
    }
    EXPECT_FALSE(pause_.is_on(now_ + seconds(1)));
}

TEST_F(retry_pause_test, begins_anew_after_a_success) {
    pause_.begin(now_);
    pause_.begin(now_ + seconds(1));
    EXPECT_TRUE(pause_.is_on(now_ + seconds(2)));
    pause_.forget(now_ + seconds(3));
    pause_.begin(now_ + seconds(10));
    EXPECT_TRUE(pause_.is_on(now_ + seconds(10)));
    EXPECT_FALSE(pause_.is_on(now_ + seconds(11)));
}

// One part of the peer's memory can be reached, another one cannot: answers for both come by turns.
TEST_F(retry_pause_test, is_not_ended_by_what_was_under_way) {
    pause_.begin(now_);
    pause_.forget(now_ + std::chrono::milliseconds(500));
    EXPECT_TRUE(pause_.is_on(now_ + std::chrono::milliseconds(500)));
    pause_.begin(now_ + seconds(1));
    EXPECT_TRUE(pause_.is_on(now_ + seconds(2)));
}

TEST_F(retry_pause_test, is_of_now_where_no_time_is_said) {
    EXPECT_FALSE(pause_.is_on());
    pause_.begin();
    EXPECT_TRUE(pause_.is_on());
}

}  // namespace
}  // namespace cuda_nc::uct
