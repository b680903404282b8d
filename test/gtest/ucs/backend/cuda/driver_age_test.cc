#include "ucs/backend/cuda/driver_age.hpp"

#include <gtest/gtest.h>

namespace cuda_nc::gpu::cuda {
namespace {

TEST(driver_age, a_driver_of_the_same_major_release_or_a_later_one_will_do) {
    EXPECT_EQ(driver_objection(13000, 13000, true), "");
    EXPECT_EQ(driver_objection(13000, 13020, true), "");
    EXPECT_EQ(driver_objection(14000, 13000, true), "");
    EXPECT_EQ(driver_objection(12000, 12090, true), "");
}

TEST(driver_age, an_older_one_is_told_from_what_on_it_would_and_what_else_would_do) {
    EXPECT_EQ(driver_objection(12040, 13000, true),
              "the driver serves CUDA 12.4, this build needs 13.0 (driver 580 or later): please "
              "update the driver, or build for it by CUDA_NC_CUDA=12 contrib/setup.sh");
    EXPECT_EQ(driver_objection(11040, 13000, true),
              "the driver serves CUDA 11.4, this build needs 13.0 (driver 580 or later): please "
              "update the driver");
    EXPECT_EQ(driver_objection(11080, 12040, true),
              "the driver serves CUDA 11.8, this build needs 12.0 (driver 525 or later): please "
              "update the driver");
}

TEST(driver_age, one_that_lacks_what_launches_will_not_do) {
    EXPECT_NE(driver_objection(13000, 13000, false), "");
}

}  // namespace
}  // namespace cuda_nc::gpu::cuda
