#include "ucs/base/fast_divide.hpp"

#include <gtest/gtest.h>

#include <random>

namespace cuda_nc {
namespace {

void expect_exact(uint64_t n, uint64_t d) {
    fast_divide by(d);
    uint64_t q = by.quotient(n);
    EXPECT_EQ(q, n / d) << n << " / " << d;
    EXPECT_EQ(by.remainder(n, q), n % d) << n << " % " << d;
}

TEST(fast_divide, is_exact_around_every_power_of_two) {
    for (unsigned a = 0; a < 64; ++a) {
        for (unsigned b = 0; b < 64; ++b) {
            for (int64_t near_n = -2; near_n <= 2; ++near_n) {
                for (int64_t near_d = -1; near_d <= 1; ++near_d) {
                    uint64_t d = (uint64_t(1) << b) + static_cast<uint64_t>(near_d);
                    if (d != 0) {
                        expect_exact((uint64_t(1) << a) + static_cast<uint64_t>(near_n), d);
                    }
                }
            }
        }
    }
}

TEST(fast_divide, is_exact_at_random_and_next_to_multiples) {
    const uint64_t seed = 20240229;
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    for (int i = 0; i < 200000; ++i) {
        uint64_t d = (random() >> (random() % 64)) | 1;
        uint64_t n = random() >> (random() % 64);
        expect_exact(n, d);
        uint64_t multiple = n / d * d;
        expect_exact(multiple, d);
        expect_exact(multiple - 1, d);
    }
}

TEST(fast_divide, default_divides_by_one) {
    EXPECT_EQ(fast_divide().quotient(UINT64_MAX), UINT64_MAX);
}

}  // namespace
}  // namespace cuda_nc
