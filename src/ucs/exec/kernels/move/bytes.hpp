// Moves bytes whose source and target are not aligned alike: reads whole aligned 16-byte words,
// funnel-shifts them, and writes every aligned 16-byte word of the target once, by one thread.
#pragma once

#include "ucs/exec/kernels/move/locate.hpp"
#include "ucs/exec/kernels/move/word.hpp"

namespace cuda_nc::exec {

// How many windows (16 packed bytes each) a part has. For pack, windows are aligned in the packed
// memory.
CUDA_NC_KERNEL uint32_t count_windows(const part &a) {
    uint32_t skew = a.dir == gpu::direction::pack ? low_bits(a.packed, 15) : 0;
    return (a.length + skew + 15) / 16;
}

// Pack: puts one aligned word of the target together from the blocks that it holds.
template <class Locator>
CUDA_NC_KERNEL void pack_window(const part &a, uint32_t window) {
    uint32_t skew = low_bits(a.packed, 15);
    char *target = a.packed - skew + uint64_t{window} * 16;
    uint32_t low = window == 0 ? skew : 0;
    uint32_t high = min_u32(16, a.length + skew - window * 16);
    uint32_t p = a.first + window * 16 + low - skew;
    cursor c;
    Locator::seek(a, p, &c);
    uint32_t end = low + min_u32(c.remaining, high - low);
    quad value = gather_quad<1>(a.base + c.displacement - low, low, end);
    CUDA_NC_NO_UNROLL
    while (end < high) {
        uint32_t begin = end;
        Locator::next(a, p + (begin - low), &c);
        end += min_u32(c.remaining, high - begin);
        merge_quad(&value, gather_quad<1>(a.base + c.displacement - begin, begin, end), begin);
    }
    store_quad(target, value, low, high);
}

// Unpack, copy: writes the aligned target words that begin in a window, and the heads of the blocks
// that begin in it.
template <class Locator>
CUDA_NC_KERNEL void scatter_window(const part &a, uint32_t window) {
    const bool copy = a.dir == gpu::direction::copy;
    uint32_t part_end = a.first + a.length;
    uint32_t p = a.first + window * 16;
    uint32_t end = min_u32(p + 16, part_end);
    cursor c;
    Locator::seek(a, p, &c);
    bool head = c.at_start || window == 0;
    CUDA_NC_NO_UNROLL
    for (;;) {
        uint32_t n = min_u32(c.remaining, end - p);          // of this block, in this window
        uint32_t left = min_u32(c.remaining, part_end - p);  // of this block, in this part
        const char *source = copy ? a.base + c.displacement : a.packed + (p - a.first);
        char *target = (copy ? a.packed : a.base) + c.displacement;
        uint32_t skew = low_bits(target, 15);
        uint32_t boundary = (16 - skew) & 15;  // bytes to the next aligned word
        uint32_t begin = head && boundary != 0 ? 0 : boundary;
        CUDA_NC_NO_UNROLL
        while (begin < n) {
            uint32_t low = begin == 0 ? skew : 0;
            uint32_t high = min_u32(16, low + left - begin);
            store_quad(target + begin - low, gather_quad<1>(source + begin - low, low, high), low,
                       high);
            begin = begin < boundary ? boundary : begin + 16;
        }
        p += n;
        if (p >= end) {
            return;
        }
        Locator::next(a, p, &c);
        head = true;
    }
}

template <class Locator>
CUDA_NC_KERNEL void move_window(const part &a, uint32_t window) {
    if (a.dir == gpu::direction::pack) {
        pack_window<Locator>(a, window);
    } else {
        scatter_window<Locator>(a, window);
    }
}

}  // namespace cuda_nc::exec
