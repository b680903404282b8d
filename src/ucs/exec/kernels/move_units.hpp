// Lists of blocks of different lengths. A warp takes a unit, a stretch of packed bytes, finds its
// first block once, and puts the next 32 blocks into a table in shared memory; then its lanes share
// the unit's aligned 16-byte words of the target evenly, whatever the blocks' lengths, and find
// their blocks in the table.
//
// After the warp-per-unit idea of Wu et al. (HPDC 2016), with words in place of blocks as shares.
#pragma once

#include "ucs/exec/kernels/move_bytes.hpp"

namespace cuda_nc::exec {

constexpr uint32_t warp_lanes = 32;
constexpr uint32_t table_blocks = warp_lanes;  // more than the 17 that a 16-byte word may touch

// A run of blocks of a list, in the order of the stream. Block i holds offsets
// [bound[i], bound[i + 1]), clipped to the part; offset p of it lies at displacement delta[i] + p.
struct unit_table {
    int64_t delta[table_blocks];
    uint32_t bound[table_blocks + 1];
    uint32_t words[table_blocks + 1];  // unpack: target words before block i
};

// The lanes of a warp, in step: each(action) runs action(lane) for all lanes and then lets each see
// what the others have written. On the host one after the other, in order.
struct lanes_in_step {
    uint32_t lane = 0;
    template <class Action>
    CUDA_NC_KERNEL void each(Action &&action) const {
#ifdef __CUDA_ARCH__
        action(lane);
        __syncwarp();
#else
        for (uint32_t one = 0; one < warp_lanes; ++one) {
            action(one);
        }
#endif
    }
};

// Where a warp stands, alike in all its lanes.
struct unit_cursor {
    uint32_t block, pass;  // first block of the table
    uint32_t at;           // pack: window; unpack: offset
    uint32_t end;
};

// First offset of a window of the packing kernels; `skew` is that of the packed side.
CUDA_NC_KERNEL uint32_t window_begin(const part &a, uint32_t window, uint32_t skew) {
    return window == 0 ? a.first : a.first + window * 16 - skew;
}

// The bytes [low, high) of a window that belong to the part, and the offset of the first.
struct window_range {
    uint32_t low, high, begin;
};
CUDA_NC_KERNEL window_range range_of_window(const part &a, uint32_t window, uint32_t skew) {
    return {window == 0 ? skew : 0, min_u32(16, a.length + skew - window * 16),
            window_begin(a, window, skew)};
}

// The last index in [0, 32) whose entry is at most `value`; that of 0 is.
CUDA_NC_KERNEL uint32_t find_entry(const uint32_t *entries, uint32_t value) {
    uint32_t index = 0;
    CUDA_NC_UNROLL
    for (uint32_t step = table_blocks / 2; step != 0; step /= 2) {
        index += entries[index + step] <= value ? step : 0;
    }
    return index;
}

CUDA_NC_KERNEL void fill_table(const part &a, const unit_cursor &s, uint32_t lane, unit_table *t) {
    uint32_t block = s.block + lane, pass = s.pass;
    if (a.num_dims != 0) {
        uint32_t passes = a.by_num_blocks.quotient(block);
        block = a.by_num_blocks.remainder(block, passes);
        pass += passes;
    }
    const uint32_t part_end = a.first + a.length;
    listed_block b = varying_locator::block_at(a, block, pass, part_end);
    t->bound[lane] = b.begin;
    t->delta[lane] = b.delta;
    if (lane == table_blocks - 1) {
        t->bound[table_blocks] = varying_locator::block_end(a, block, pass, part_end);
    }
}

// Pack: windows at + lane, at + lane + 32, ... below `limit`, Unroll of them: all first loads, then
// the rest of words that hold several blocks.
template <int Align, int Unroll>
CUDA_NC_KERNEL void pack_from_table(const part &a, const unit_table &t, uint32_t window,
                                    uint32_t limit) {
    const uint32_t skew = low_bits(a.packed, 15);
    quad_load<Align> loaded[Unroll];
    uint32_t entry[Unroll];
    CUDA_NC_UNROLL
    for (int u = 0; u < Unroll; ++u) {
        uint32_t w = window + static_cast<uint32_t>(u) * warp_lanes;
        if (w < limit) {
            window_range r = range_of_window(a, w, skew);
            uint32_t e = entry[u] = find_entry(t.bound, r.begin);
            loaded[u].load(a.base + (t.delta[e] + r.begin) - r.low, r.low,
                           r.low + min_u32(t.bound[e + 1] - r.begin, r.high - r.low));
        }
    }
    CUDA_NC_UNROLL
    for (int u = 0; u < Unroll; ++u) {
        uint32_t w = window + static_cast<uint32_t>(u) * warp_lanes;
        if (w < limit) {
            window_range r = range_of_window(a, w, skew);
            quad value = loaded[u].join();
            const uint32_t stop = r.begin + (r.high - r.low);
            uint32_t e = entry[u];
            CUDA_NC_NO_UNROLL
            for (uint32_t next = t.bound[e + 1]; next < stop; next = t.bound[e + 1]) {
                ++e;
                uint32_t begin = r.low + (next - r.begin);
                uint32_t end = r.low + (min_u32(t.bound[e + 1], stop) - r.begin);
                merge_quad(&value,
                           gather_quad<Align>(a.base + (t.delta[e] + next) - begin, begin, end),
                           begin);
            }
            store_quad(a.packed - skew + uint64_t{w} * 16, value, r.low, r.high);
        }
    }
}

// Unpack, copy: the target words of one block that begin in [begin, end) of the stream; the word
// that holds the block's first byte begins there too.
struct block_words {
    uint32_t begin;  // offset of the part
    int32_t first;   // offset of the first word relative to `begin`
    uint32_t count;
};
CUDA_NC_KERNEL block_words words_of_block(const part &a, int64_t delta, uint32_t block_begin,
                                          uint32_t begin, uint32_t end) {
    block_words w;
    w.begin = begin;
    const char *target = (a.dir == gpu::direction::copy ? a.packed : a.base) + (delta + begin);
    auto skew = static_cast<int32_t>(low_bits(target, 15));
    bool head = begin == block_begin || begin == a.first;
    w.first = skew == 0 || head ? -skew : 16 - skew;
    int32_t bytes = static_cast<int32_t>(end - begin) - w.first;
    w.count = begin < end && bytes > 0 ? (static_cast<uint32_t>(bytes) + 15) / 16 : 0;
    return w;
}

// Where word k of them lies, and which of its bytes are the block's, which ends at `block_end`.
struct target_word {
    const char *source;
    char *target;
    uint32_t low, high;
};
CUDA_NC_KERNEL target_word locate_word(const part &a, int64_t delta, const block_words &w,
                                       uint32_t k, uint32_t block_end) {
    const bool copy = a.dir == gpu::direction::copy;
    int32_t offset = w.first + static_cast<int32_t>(k * 16);
    target_word r;
    r.target = (copy ? a.packed : a.base) + (delta + w.begin) + offset;
    r.source = (copy ? a.base + (delta + w.begin) : a.packed + (w.begin - a.first)) + offset;
    r.low = offset < 0 ? static_cast<uint32_t>(-offset) : 0;
    r.high = static_cast<uint32_t>(static_cast<int32_t>(
        min_u32(16, static_cast<uint32_t>(static_cast<int32_t>(block_end - w.begin) - offset))));
    return r;
}

// Fills t->words; lanes in order on the host.
CUDA_NC_KERNEL void count_target_words(const part &a, const unit_cursor &s, uint32_t lane,
                                       unit_table *t) {
    uint32_t begin = t->bound[lane] > s.at ? t->bound[lane] : s.at;
    uint32_t end = min_u32(t->bound[lane + 1], s.end);
    uint32_t sum = words_of_block(a, t->delta[lane], t->bound[lane], begin, end).count;
#ifdef __CUDA_ARCH__
    CUDA_NC_UNROLL
    for (uint32_t step = 1; step < warp_lanes; step *= 2) {
        uint32_t before = __shfl_up_sync(0xffffffffu, sum, step);
        sum += lane >= step ? before : 0;
    }
#else
    sum += lane == 0 ? 0 : t->words[lane];
#endif
    t->words[lane + 1] = sum;
    if (lane == 0) {
        t->words[0] = 0;
    }
}

template <int Align, int Unroll>
CUDA_NC_KERNEL void scatter_from_table(const part &a, const unit_cursor &s, const unit_table &t,
                                       uint32_t item) {
    const uint32_t limit = t.words[table_blocks];
    quad_load<Align> loaded[Unroll];
    target_word word[Unroll];
    CUDA_NC_UNROLL
    for (int u = 0; u < Unroll; ++u) {
        uint32_t i = item + static_cast<uint32_t>(u) * warp_lanes;
        if (i < limit) {
            uint32_t e = find_entry(t.words, i);
            uint32_t begin = t.bound[e] > s.at ? t.bound[e] : s.at;
            block_words w = words_of_block(a, t.delta[e], t.bound[e], begin, s.end);
            word[u] = locate_word(a, t.delta[e], w, i - t.words[e], t.bound[e + 1]);
            loaded[u].load(word[u].source, word[u].low, word[u].high);
        }
    }
    CUDA_NC_UNROLL
    for (int u = 0; u < Unroll; ++u) {
        if (item + static_cast<uint32_t>(u) * warp_lanes < limit) {
            store_quad(word[u].target, loaded[u].join(), word[u].low, word[u].high);
        }
    }
}

template <int Align>
constexpr int unroll_table_words = Align == 1 ? 2 : 4;

// All windows of a unit; every round ends with a table that holds at least one whole window.
template <int Align>
CUDA_NC_KERNEL void pack_unit(const part &a, unit_cursor s, unit_table *t, lanes_in_step lanes) {
    const uint32_t skew = low_bits(a.packed, 15);
    const uint32_t part_end = a.first + a.length;
    while (s.at < s.end) {
        lanes.each([&](uint32_t lane) { fill_table(a, s, lane, t); });
        uint32_t covered = t->bound[table_blocks];
        uint32_t limit =
            covered == part_end ? s.end : min_u32(s.end, (covered - a.first + skew) / 16);
        for (uint32_t at = s.at; at < limit; at += warp_lanes * unroll_table_words<Align>) {
            lanes.each([&](uint32_t lane) {
                pack_from_table<Align, unroll_table_words<Align>>(a, *t, at + lane, limit);
            });
        }
        if (limit < s.end) {
            s.block += find_entry(t->bound, window_begin(a, limit, skew));
        }
        s.at = limit;
        lanes.each([](uint32_t) {});  // nobody fills while another reads
    }
}

template <int Align>
CUDA_NC_KERNEL void scatter_unit(const part &a, unit_cursor s, unit_table *t, lanes_in_step lanes) {
    while (s.at < s.end) {
        lanes.each([&](uint32_t lane) { fill_table(a, s, lane, t); });
        lanes.each([&](uint32_t lane) { count_target_words(a, s, lane, t); });
        const uint32_t limit = t->words[table_blocks];
        for (uint32_t at = 0; at < limit; at += warp_lanes * unroll_table_words<Align>) {
            lanes.each([&](uint32_t lane) {
                scatter_from_table<Align, unroll_table_words<Align>>(a, s, *t, at + lane);
            });
        }
        s.at = t->bound[table_blocks];
        s.block += table_blocks;
        lanes.each([](uint32_t) {});
    }
}

CUDA_NC_KERNEL uint32_t count_units(const part &a, uint32_t unit_log2) {
    uint32_t bytes = a.dir == gpu::direction::pack ? count_windows(a) * 16 : a.length;
    return (bytes - 1) / (1u << unit_log2) + 1;
}

// Unit `unit` of 2^unit_log2 bytes.
template <bool Packing, int Align>
CUDA_NC_KERNEL void move_unit(const part &a, uint32_t unit, uint32_t unit_log2, unit_table *t,
                              lanes_in_step lanes) {
    unit_cursor s;
    if (Packing) {
        const uint32_t skew = low_bits(a.packed, 15);
        s.at = unit << (unit_log2 - 4);
        s.end = min_u32((unit + 1) << (unit_log2 - 4), count_windows(a));
        varying_locator::find_block(a, window_begin(a, s.at, skew), &s.block, &s.pass);
        pack_unit<Align>(a, s, t, lanes);
    } else {
        s.at = a.first + (unit << unit_log2);
        s.end = a.first + min_u32((unit + 1) << unit_log2, a.length);
        varying_locator::find_block(a, s.at, &s.block, &s.pass);
        scatter_unit<Align>(a, s, t, lanes);
    }
}

}  // namespace cuda_nc::exec
