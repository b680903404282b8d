// The table in shared memory that says where the next blocks of a unit lie.
#pragma once

#include "ucs/exec/kernels/move/locate.hpp"
#include "ucs/exec/kernels/move/warp.hpp"

namespace cuda_nc::exec {

// Each lane fetches one block; the last one only tells where the one before ends.
constexpr uint32_t table_blocks = warp_lanes - 1;
// Most blocks of the table in front of the first that is wanted. At least 17 others remain, as many
// as a 16-byte word can touch.
constexpr uint32_t table_slack = 8;

// Neighbouring blocks of a list in packed order. Block i holds offsets [bound[i], bound[i + 1]),
// clipped to the part; its offset p lies at displacement delta[i] + p.
struct unit_table {
    int64_t delta[warp_lanes];
    uint32_t bound[warp_lanes];
    uint32_t words[warp_lanes];  // unpack: target words before block i
};

// How far a warp has come in its unit; the same in all lanes.
struct unit_cursor {
    uint32_t block, pass;  // first block of the table
    uint32_t at;           // pack: window; unpack: offset
    uint32_t end;
};

// The last index whose entry is at most `value`; entry 0 is.
CUDA_NC_KERNEL uint32_t find_entry(const uint32_t *entries, uint32_t value) {
    uint32_t index = 0;
    CUDA_NC_UNROLL
    for (uint32_t step = warp_lanes / 2; step != 0; step /= 2) {
        index += entries[index + step] <= value ? step : 0;
    }
    return index;
}

// The same, with one value for all lanes; all lanes must call it.
CUDA_NC_KERNEL uint32_t find_common_entry(const uint32_t *entries, uint32_t value, uint32_t lane) {
#ifdef __CUDA_ARCH__
    return static_cast<uint32_t>(__popc(__ballot_sync(0xffffffffu, entries[lane] <= value))) - 1;
#else
    static_cast<void>(lane);
    return find_entry(entries, value);
#endif
}

// The same, where the answer is known to lie in [first, last].
CUDA_NC_KERNEL uint32_t find_entry_between(const uint32_t *entries, uint32_t value, uint32_t first,
                                           uint32_t last) {
    if (last - first > 3) {
        return find_entry(entries, value);
    }
    CUDA_NC_NO_UNROLL
    while (first < last && entries[first + 1] <= value) {
        ++first;
    }
    return first;
}

CUDA_NC_KERNEL void fill_table(const part &a, const unit_cursor &s, uint32_t lane, unit_table *t) {
    uint32_t block = s.block + lane, pass = s.pass;
    if (a.num_dims != 0) {
        uint32_t passes = a.by_num_blocks.quotient(block);
        block = a.by_num_blocks.remainder(block, passes);
        pass += passes;
    }
    listed_block b = varying_locator::block_at(a, block, pass, a.first + a.length, s.block);
    t->bound[lane] = b.begin;
    t->delta[lane] = b.delta;
}

template <int Align>
constexpr int unroll_table_words = Align == 1 ? 2 : 4;

}  // namespace cuda_nc::exec
