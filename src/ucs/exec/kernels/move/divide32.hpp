// Division of 31-bit numbers by a divisor that is fixed for many operands: one multiplication and
// two shifts, a third of the cost of fast_divide on a GPU.
#pragma once

#include <cstdint>

#include "ucs/base/bits.hpp"
#include "ucs/base/compiler.hpp"

namespace cuda_nc::exec {

// Exact for dividends and divisors below 2^31, divisor >= 1. With s = ceil(log2 divisor) and
// m = floor(2^(31+s) / divisor) + 1, n * m / 2^(31+s) exceeds n / divisor by less than 1 / divisor.
struct fast_divide32 {
    uint32_t divisor = 1;
    uint32_t magic = 0x80000001u;
    uint32_t shift = 0;

    fast_divide32() = default;

    CUDA_NC_HD explicit fast_divide32(uint32_t d) : divisor(d) {
        shift = log2_ceil(d);
        if ((d & (d - 1)) != 0) {  // a GPU takes long for a division
            magic = static_cast<uint32_t>((uint64_t{1} << (31 + shift)) / d) + 1;
        }
    }

    CUDA_NC_HD uint32_t quotient(uint32_t n) const {
#ifdef __CUDA_ARCH__
        return __umulhi(n << 1, magic) >> shift;
#else
        return static_cast<uint32_t>((uint64_t{n << 1} * magic) >> 32) >> shift;
#endif
    }

    CUDA_NC_HD uint32_t remainder(uint32_t n, uint32_t q) const {
        return n - q * divisor;
    }
};

}  // namespace cuda_nc::exec
