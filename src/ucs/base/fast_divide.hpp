// Division by a number that is fixed for many operands.
//
// Granlund and Montgomery, "Division by invariant integers using multiplication" (1994): the
// quotient by `divisor` is a multiplication's high word, an addition and two shifts.
#pragma once

#include <cstdint>

#include "ucs/base/bits.hpp"
#include "ucs/base/compiler.hpp"

namespace cuda_nc {

// Exact for every 64-bit dividend and every divisor >= 1. Trivially copyable: it travels to a GPU
// inside a kernel's arguments.
struct fast_divide {
    uint64_t divisor = 1;
    uint64_t magic = 0;  // 0: the divisor is a power of two and `shift` alone divides
    uint32_t shift = 0;

    fast_divide() = default;

    explicit fast_divide(uint64_t d) : divisor(d) {
        shift = log2_floor(d);
        if ((d & (d - 1)) == 0) {
            return;
        }
        // magic = floor(2^64 * (2^(shift + 1) - d) / d) + 1; the bracket is below d, and
        // modulo 2^64 it is right for a divisor above 2^63 too.
        using u128 = unsigned __int128;
        uint64_t bracket = (shift == 63 ? 0 : uint64_t(2) << shift) - d;
        magic = static_cast<uint64_t>((u128(bracket) << 64) / d) + 1;
    }

    CUDA_NC_HD uint64_t quotient(uint64_t n) const {
        if (magic == 0) {
            return n >> shift;
        }
#ifdef __CUDA_ARCH__
        uint64_t high = __umul64hi(magic, n);
#else
        uint64_t high = static_cast<uint64_t>((static_cast<unsigned __int128>(magic) * n) >> 64);
#endif
        return (((n - high) >> 1) + high) >> shift;
    }

    CUDA_NC_HD uint64_t remainder(uint64_t n, uint64_t q) const {
        return n - q * divisor;
    }
};

}  // namespace cuda_nc
