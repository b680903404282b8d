#include "ucs/base/bits.hpp"

#include <gtest/gtest.h>

namespace cuda_nc {
namespace {

TEST(bits, logarithms_are_rounded_down_and_up) {
    EXPECT_EQ(log2_ceil(uint64_t{0}), 0u);
    EXPECT_EQ(log2_ceil(uint64_t{1}), 0u);
    for (uint32_t n = 1; n < 64; ++n) {
        const uint64_t power = uint64_t{1} << n;
        EXPECT_EQ(log2_floor(power), n);
        EXPECT_EQ(log2_floor(power - 1), n - 1);
        EXPECT_EQ(log2_ceil(power), n);
        EXPECT_EQ(log2_ceil(power + 1), n + 1);
    }
    EXPECT_EQ(log2_floor(UINT32_MAX), 31u);
    EXPECT_EQ(log2_ceil(UINT32_MAX), 32u);
    EXPECT_EQ(log2_ceil(UINT64_MAX), 64u);
}

TEST(bits, multiples_are_rounded_up) {
    for (uint64_t unit : {1, 3, 16, 1000}) {
        for (uint64_t value = 0; value < 3 * unit + 2; ++value) {
            const uint64_t rounded = round_up(value, unit);
            EXPECT_EQ(rounded % unit, 0u);
            EXPECT_TRUE(rounded >= value && rounded - value < unit) << value << " by " << unit;
            EXPECT_EQ(divide_up(value, unit), rounded / unit);
        }
    }
}

TEST(bits, trailing_zeros_have_a_limit) {
    EXPECT_EQ(trailing_zeros(0, 4), 4u);
    EXPECT_EQ(trailing_zeros(32, 4), 4u);
    EXPECT_EQ(trailing_zeros(8, 4), 3u);
    EXPECT_EQ(trailing_zeros(7, 4), 0u);
}

TEST(bits, magnitudes_include_that_of_the_least_number) {
    EXPECT_EQ(magnitude(-5), 5u);
    EXPECT_EQ(magnitude(5), 5u);
    EXPECT_EQ(magnitude(INT64_MIN), uint64_t{1} << 63);
}

}  // namespace
}  // namespace cuda_nc
