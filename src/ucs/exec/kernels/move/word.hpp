// Words of 1 to 16 bytes, and how bytes move between words that are not aligned alike.
//
// Reads may touch bytes beside those asked for, but only within the aligned 16-byte words that hold
// those, so never a page outside the buffer's. Writes touch only the bytes asked for: the bytes
// beside them may belong to another thread.
#pragma once

#include <cstdint>
#include <cstring>

#include "ucs/base/bits.hpp"
#include "ucs/base/compiler.hpp"

// A test may define these before including this file, to observe every access.
#ifndef CUDA_NC_ON_READ
#define CUDA_NC_ON_READ(address, size)
#define CUDA_NC_ON_WRITE(address, size)
#endif

// A function of a kernel. On the host it need not be inlined: speed does not matter there, and the
// tests instantiate every kernel in one file.
#ifdef __CUDACC__
#define CUDA_NC_KERNEL __host__ __device__ __forceinline__
#else
#define CUDA_NC_KERNEL inline
#endif

// Unrolls loops on a GPU; host compilers decide for themselves.
#ifdef __CUDA_ARCH__
#define CUDA_NC_UNROLL _Pragma("unroll")
#define CUDA_NC_NO_UNROLL _Pragma("unroll 1")
#else
#define CUDA_NC_UNROLL
#define CUDA_NC_NO_UNROLL
#endif

namespace cuda_nc::exec {

constexpr uint32_t warp_lanes = 32;

struct alignas(16) quad {
    uint32_t w[4];
};

template <int Bytes>
struct word_of;
template <>
struct word_of<1> {
    using type = uint8_t;
};
template <>
struct word_of<2> {
    using type = uint16_t;
};
template <>
struct word_of<4> {
    using type = uint32_t;
};
template <>
struct word_of<8> {
    using type = unsigned long long;
};
template <>
struct word_of<16> {
    using type = quad;
};
template <int Bytes>
using word = typename word_of<Bytes>::type;

// `address` is a multiple of Bytes. Plain loads: source memory may change while a kernel runs (the
// ring of a pipe), and those of the read-only path were not faster.
template <int Bytes>
CUDA_NC_KERNEL word<Bytes> load_word(const char *address) {
#ifdef __CUDA_ARCH__
    if constexpr (Bytes == 16) {
        uint4 v = *reinterpret_cast<const uint4 *>(address);
        return quad{{v.x, v.y, v.z, v.w}};
    } else {
        return *reinterpret_cast<const word<Bytes> *>(address);
    }
#else
    CUDA_NC_ON_READ(address, Bytes);
    word<Bytes> value;
    memcpy(&value, address, Bytes);
    return value;
#endif
}

template <int Bytes>
CUDA_NC_KERNEL void store_word(char *address, const word<Bytes> &value) {
#ifdef __CUDA_ARCH__
    if constexpr (Bytes == 16) {
        *reinterpret_cast<uint4 *>(address) =
            make_uint4(value.w[0], value.w[1], value.w[2], value.w[3]);
    } else {
        *reinterpret_cast<word<Bytes> *>(address) = value;
    }
#else
    CUDA_NC_ON_WRITE(address, Bytes);
    memcpy(address, &value, Bytes);
#endif
}

CUDA_NC_KERNEL uint32_t low_bits(const char *address, uint32_t mask) {
    return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(address)) & mask;
}

CUDA_NC_KERNEL uint32_t min_u32(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

// The low 32 bits of high:low >> bits, bits in 0..31.
CUDA_NC_KERNEL uint32_t funnel_right(uint32_t low, uint32_t high, uint32_t bits) {
#ifdef __CUDA_ARCH__
    return __funnelshift_r(low, high, bits);
#else
    return static_cast<uint32_t>(((uint64_t{high} << 32) | low) >> bits);
#endif
}

// Bytes shift .. shift + 15 of the 32 bytes low:high; shift in 0..15.
CUDA_NC_KERNEL quad funnel(const quad &low, const quad &high, uint32_t shift) {
    uint32_t a[7] = {low.w[0], low.w[1], low.w[2], low.w[3], high.w[0], high.w[1], high.w[2]};
    if (shift & 8) {
        a[0] = a[2], a[1] = a[3], a[2] = a[4], a[3] = a[5], a[4] = a[6];
        a[5] = high.w[3];
    }
    if (shift & 4) {
        a[0] = a[1], a[1] = a[2], a[2] = a[3], a[3] = a[4], a[4] = a[5];
    }
    uint32_t bits = (shift & 3) * 8;
    return quad{{funnel_right(a[0], a[1], bits), funnel_right(a[1], a[2], bits),
                 funnel_right(a[2], a[3], bits), funnel_right(a[3], a[4], bits)}};
}

// Reads bytes [low, high) of the 16 at `address`, 0 <= low < high <= 16, in two steps, so that
// several reads can be in flight: load(), and join() once the bytes are needed. The other bytes of
// the result are undefined. `address` is a multiple of Align.
template <int Align>
struct quad_load;

// Any alignment: reads the two aligned words that hold the bytes.
template <>
struct quad_load<1> {
    quad first, second;
    uint32_t shift;

    CUDA_NC_KERNEL void load(const char *address, uint32_t low, uint32_t high) {
        first = quad{};
        second = quad{};
        shift = low_bits(address, 15);
        const char *aligned = address - shift;
        if (low + shift < 16) {
            first = load_word<16>(aligned);
        }
        if (high + shift > 16) {
            second = load_word<16>(aligned + 16);
        }
    }
    CUDA_NC_KERNEL quad join() const { return funnel(first, second, shift); }
};

// Multiples of 8: two words of 8 bytes, half the registers and no shift.
template <>
struct quad_load<8> {
    word<8> first, second;

    CUDA_NC_KERNEL void load(const char *address, uint32_t low, uint32_t high) {
        first = low < 8 ? load_word<8>(address) : 0;
        second = high > 8 ? load_word<8>(address + 8) : 0;
    }
    CUDA_NC_KERNEL quad join() const {
        return quad{{static_cast<uint32_t>(first), static_cast<uint32_t>(first >> 32),
                     static_cast<uint32_t>(second), static_cast<uint32_t>(second >> 32)}};
    }
};

template <int Align>
CUDA_NC_KERNEL quad gather_quad(const char *address, uint32_t low, uint32_t high) {
    quad_load<Align> q;
    q.load(address, low, high);
    return q.join();
}

// Replaces bytes [low, 16) of *value by those of `later`.
CUDA_NC_KERNEL void merge_quad(quad *value, const quad &later, uint32_t low) {
    CUDA_NC_UNROLL
    for (uint32_t j = 0; j < 4; ++j) {
        uint32_t keep = low <= 4 * j ? 0 : low >= 4 * j + 4 ? 4 : low - 4 * j;
        uint32_t mask = keep == 4 ? 0 : 0xffffffffu << (8 * keep);
        value->w[j] = (value->w[j] & ~mask) | (later.w[j] & mask);
    }
}

// Writes bytes [low, high) of a 4-byte word, in the widest pieces that alignment allows.
CUDA_NC_KERNEL void store_part(char *address, uint32_t value, uint32_t low, uint32_t high) {
    if (low == 0 && high == 4) {
        store_word<4>(address, value);
        return;
    }
    if (low & 1) {
        store_word<1>(address + low, static_cast<uint8_t>(value >> (8 * low)));
        ++low;
    }
    if (high >= low + 2) {
        store_word<2>(address + low, static_cast<uint16_t>(value >> (8 * low)));
        low += 2;
    }
    if (high > low) {
        store_word<1>(address + low, static_cast<uint8_t>(value >> (8 * low)));
    }
}

// Writes bytes [low, high) of `value` to address + low .. address + high; `address` is a multiple
// of 16.
CUDA_NC_KERNEL void store_quad(char *address, const quad &value, uint32_t low, uint32_t high) {
    if (low == 0 && high == 16) {
        store_word<16>(address, value);
        return;
    }
    CUDA_NC_UNROLL
    for (uint32_t j = 0; j < 4; j += 2) {
        uint32_t begin = low > 4 * j ? low : 4 * j;
        uint32_t end = high < 4 * j + 8 ? high : 4 * j + 8;
        if (begin >= end) {
            continue;
        }
        if (end - begin == 8) {
            store_word<8>(address + 4 * j,
                          (static_cast<unsigned long long>(value.w[j + 1]) << 32) | value.w[j]);
            continue;
        }
        CUDA_NC_UNROLL
        for (uint32_t k = j; k < j + 2; ++k) {
            uint32_t from = begin > 4 * k ? begin - 4 * k : 0;
            uint32_t to = end < 4 * k ? 0 : end - 4 * k < 4 ? end - 4 * k : 4;
            if (from < to) {
                store_part(address + 4 * k, value.w[k], from, to);
            }
        }
    }
}

}  // namespace cuda_nc::exec
