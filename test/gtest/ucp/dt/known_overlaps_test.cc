#include "ucp/dt/known_overlaps.hpp"

#include <gtest/gtest.h>

#include <new>

namespace cuda_nc::dt {
namespace {

class known_overlaps_test : public testing::Test {
  protected:
    // Elements overlap where there are more than ten.
    bool ask(uint64_t count) {
        return known_.find(count, [&] {
            ++looks_;
            return count > 10;
        });
    }

    known_overlaps known_;
    unsigned looks_ = 0;
};

TEST_F(known_overlaps_test, counts_that_are_asked_in_turns_are_looked_through_once) {
    for (int i = 0; i < 100; ++i) {
        for (uint64_t count = 7; count < 7 + known_overlaps::most; ++count) {
            EXPECT_EQ(ask(count), count > 10);
        }
    }
    EXPECT_EQ(looks_, known_overlaps::most);
}

TEST_F(known_overlaps_test, more_counts_than_are_kept_have_right_answers) {
    for (int i = 0; i < 3; ++i) {
        for (uint64_t count = 1; count < 4 * known_overlaps::most; ++count) {
            EXPECT_EQ(ask(count), count > 10) << count;
        }
    }
    EXPECT_TRUE(ask(uint64_t{1} << 62));
    EXPECT_TRUE(ask((uint64_t{1} << 62) + 1));
}

TEST_F(known_overlaps_test, no_elements_do_not_overlap) {
    EXPECT_FALSE(ask(0));
    EXPECT_EQ(looks_, 0u);
}

TEST_F(known_overlaps_test, what_could_not_be_looked_through_is_not_known) {
    EXPECT_THROW(known_.find(20, []() -> bool { throw std::bad_alloc(); }), std::bad_alloc);
    EXPECT_TRUE(ask(20));
    EXPECT_EQ(looks_, 1u);
}

}  // namespace
}  // namespace cuda_nc::dt
