// How many of a user's things stay open, for users who go round them, leave them, or both.
#include "uct/cuda_nc/memory/room_by_need.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <utility>

namespace cuda_nc::uct {
namespace {

using room_of_numbers = room_by_need<uint64_t>;

// Opens and closes as the transport does: what is open lies in the order of its last use.
class opener {
  public:
    void use(uint64_t one) {
        const auto at = std::find(open_.begin(), open_.end(), one);
        if (at != open_.end()) {
            open_.splice(open_.end(), open_, at);
            return;
        }
        ++opened_;
        const bool returned = room_.forget(one);
        for (size_t left = room_.to_close(returned, open_.size()); left != 0; --left) {
            room_.remember(open_.front());
            open_.pop_front();
        }
        open_.push_back(one);
    }
    // Rounds of all of [first, first + number).
    void go_round(uint64_t first, uint64_t number, int rounds) {
        for (int round = 0; round < rounds; ++round) {
            for (uint64_t one = first; one < first + number; ++one) {
                use(one);
            }
        }
    }
    uint64_t opened_since() { return std::exchange(opened_, 0); }
    size_t open() const { return open_.size(); }
    size_t room() const { return room_.room(); }

  private:
    std::list<uint64_t> open_;
    room_of_numbers room_;
    uint64_t opened_ = 0;
};

constexpr uint64_t least = room_of_numbers::least, most = room_of_numbers::most;

TEST(room_by_need_test, what_is_used_once_does_not_stay) {
    opener all;
    all.go_round(0, 100000, 1);
    EXPECT_EQ(all.open(), least);
    EXPECT_EQ(all.room(), least);
}

TEST(room_by_need_test, who_goes_round_opens_each_twice_at_most) {
    for (uint64_t number : {least, least + 1, 2 * least, uint64_t{1000}, most}) {
        opener all;
        all.go_round(0, number, 2);
        EXPECT_LE(all.opened_since(), 2 * number - least);
        EXPECT_EQ(all.room(), number);
        all.go_round(0, number, 20);
        EXPECT_EQ(all.opened_since(), 0u) << number;
        EXPECT_EQ(all.open(), number);
    }
}

TEST(room_by_need_test, there_is_a_bound) {
    opener all;
    all.go_round(0, most + most / 2, 3);
    EXPECT_EQ(all.open(), most);
    EXPECT_EQ(all.room(), most);
}

TEST(room_by_need_test, who_goes_round_and_opens_new_ones_keeps_what_returns) {
    opener all;
    uint64_t next = 1000000;
    const auto go = [&](int rounds) {
        for (int round = 0; round < rounds; ++round) {
            all.go_round(0, 100, 1);
            all.go_round(next, 10, 1);
            next += 10;
        }
    };
    go(20);
    all.opened_since();
    go(100);
    EXPECT_LE(all.opened_since(), 100u * 15) << "few beside the new ones";
    EXPECT_LE(all.open(), 110u + 10) << "the new ones do not stay";
}

TEST(room_by_need_test, the_room_shrinks_when_others_come_that_do_not_return) {
    opener all;
    all.go_round(0, 1000, 3);
    ASSERT_EQ(all.open(), 1000u);
    all.go_round(1000000, 400, 1);
    EXPECT_EQ(all.room(), 900u);
    EXPECT_EQ(all.open(), 900u);
    all.go_round(2000000, 4 * 900, 1);
    EXPECT_EQ(all.open(), least);
    EXPECT_EQ(all.room(), least);
}

TEST(room_by_need_test, what_comes_back_after_a_long_time_makes_its_room_again) {
    opener all;
    all.go_round(0, 200, 3);
    all.go_round(1000000, 10000, 1);
    ASSERT_EQ(all.room(), least);
    all.opened_since();
    all.go_round(0, 200, 20);
    EXPECT_LE(all.opened_since(), 2 * 200u);
}

TEST(room_by_need_test, no_open_closes_many) {
    room_of_numbers room;
    EXPECT_EQ(room.to_close(false, least - 1), 0u);
    EXPECT_EQ(room.to_close(false, least), 1u);
    EXPECT_EQ(room.to_close(false, most), 2u) << "as many as were in use at once";
}

TEST(room_by_need_test, the_room_goes_with_those_who_needed_it) {
    room_of_numbers room;
    for (uint64_t open = least; open < 500; ++open) {
        EXPECT_EQ(room.to_close(true, open), 0u);
    }
    ASSERT_EQ(room.room(), 500u);
    room.shrink_to(600);
    EXPECT_EQ(room.room(), 500u);
    room.shrink_to(200);
    EXPECT_EQ(room.room(), 200u);
    room.shrink_to(0);
    EXPECT_EQ(room.room(), least);
}

TEST(room_by_need_test, a_name_is_remembered_for_a_time) {
    room_of_numbers room;
    EXPECT_FALSE(room.forget(1));
    room.remember(1);
    EXPECT_TRUE(room.forget(1));
    EXPECT_FALSE(room.forget(1));
    room.remember(1);
    for (uint64_t one = 10; one < 10 + most; ++one) {
        room.remember(one);
    }
    EXPECT_TRUE(room.forget(1));
    room.remember(1);
    for (uint64_t one = 10; one < 10 + 2 * most; ++one) {
        room.remember(one + most);
    }
    EXPECT_FALSE(room.forget(1));
}

}  // namespace
}  // namespace cuda_nc::uct
