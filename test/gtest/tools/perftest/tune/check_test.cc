#include "tools/perftest/tune/check.hpp"

#include <gtest/gtest.h>

namespace cuda_nc::tools {
namespace {

checked_row row(double measured, double predicted) {
    checked_row made;
    made.measured = measured;
    made.predicted = predicted;
    return made;
}

TEST(tune_check, near_is_within_a_quarter_both_ways) {
    EXPECT_TRUE(row(100, 125).near());
    EXPECT_TRUE(row(125, 100).near());
    EXPECT_FALSE(row(100, 126).near());
    EXPECT_FALSE(row(126, 100).near());
}

TEST(tune_check, a_share_is_enough_from_the_required_percentage_on) {
    std::vector<checked_row> rows(9, row(10, 11));
    rows.push_back(row(10, 20));
    EXPECT_EQ(share_of(rows), "9 of 10 (90%) within 25%");
    EXPECT_TRUE(enough_near(rows, 0));
    EXPECT_TRUE(enough_near(rows, 90));
    EXPECT_FALSE(enough_near(rows, 90.1));
    EXPECT_FALSE(enough_near(rows, 100));
}

TEST(tune_check, what_failed_or_is_missing_is_not_near) {
    checked_row failed;
    failed.error = "no memory";
    EXPECT_FALSE(enough_near({row(10, 10), failed}, 51));
    EXPECT_FALSE(enough_near({}, 1));
    EXPECT_TRUE(enough_near({}, 0));
}

}  // namespace
}  // namespace cuda_nc::tools
