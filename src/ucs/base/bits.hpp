// Integer arithmetic that the C++17 library lacks, for the host and for kernels.
#pragma once

#include <cstdint>

#include "ucs/base/compiler.hpp"

namespace cuda_nc {

// The largest n with 2^n <= value, an unsigned number that is not 0.
template <class T>
CUDA_NC_HD uint32_t log2_floor(T value) {
    static_assert(T(-1) > T(0), "unsigned");
    if constexpr (sizeof(T) <= sizeof(uint32_t)) {
#ifdef __CUDA_ARCH__
        return 31 - static_cast<uint32_t>(__clz(static_cast<int>(value)));
#else
        return 31 - static_cast<uint32_t>(__builtin_clz(value));
#endif
    } else {
#ifdef __CUDA_ARCH__
        return 63 - static_cast<uint32_t>(__clzll(static_cast<long long>(value)));
#else
        return 63 - static_cast<uint32_t>(__builtin_clzll(value));
#endif
    }
}

// The smallest n with value <= 2^n; 0 for 0.
template <class T>
CUDA_NC_HD uint32_t log2_ceil(T value) {
    return value <= 1 ? 0 : log2_floor(static_cast<T>(value - 1)) + 1;
}

// The largest n <= `most` with 2^n dividing value; `most` for 0.
CUDA_NC_HD uint32_t trailing_zeros(uint64_t value, uint32_t most) {
    const uint64_t bounded = value | uint64_t{1} << most;
#ifdef __CUDA_ARCH__
    return static_cast<uint32_t>(__ffsll(static_cast<long long>(bounded))) - 1;
#else
    return static_cast<uint32_t>(__builtin_ctzll(bounded));
#endif
}

template <class T>
struct same_type {
    using type = T;
};

// value / divisor, rounded up. The sum of both must not overflow.
template <class T>
CUDA_NC_HD constexpr T divide_up(T value, typename same_type<T>::type divisor) {
    return (value + divisor - 1) / divisor;
}

// The smallest multiple of `unit` that is at least `value`. The sum of both must not overflow.
template <class T>
CUDA_NC_HD constexpr T round_up(T value, typename same_type<T>::type unit) {
    return divide_up(value, unit) * unit;
}

// |value|, of the least number too.
CUDA_NC_HD uint64_t magnitude(int64_t value) {
    const auto bits = static_cast<uint64_t>(value);
    return value < 0 ? uint64_t{0} - bits : bits;
}

// Scatters the bits of `value` over all bits of the result, one to one: the last step of splitmix64
// (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
CUDA_NC_HD uint64_t mix64(uint64_t value) {
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

// A hash of a text that is the same in every process: FNV-1a (Fowler, Noll and Vo), 32 bits.
inline uint32_t fnv1a(const char *text) noexcept {
    uint32_t hash = 2166136261u;
    for (; *text != '\0'; ++text) {
        hash = (hash ^ static_cast<unsigned char>(*text)) * 16777619u;
    }
    return hash;
}

}  // namespace cuda_nc
