// Unpacks and copies units whose two sides are not aligned to each other: each lane puts one
// aligned 16-byte word of the target together.
#pragma once

#include "ucs/exec/kernels/move/bytes.hpp"
#include "ucs/exec/kernels/move/unit_table.hpp"

namespace cuda_nc::exec {

// The aligned target words of one block that begin in offsets [begin, end); the word that holds the
// block's first byte counts as beginning there.
struct word_run {
    uint32_t begin;  // offset of the part
    int32_t first;   // offset of the first word relative to `begin`
    uint32_t count;
};
CUDA_NC_KERNEL word_run words_of_block(const part &a, int64_t delta, uint32_t block_begin,
                                       uint32_t begin, uint32_t end) {
    word_run w;
    w.begin = begin;
    const char *target = (a.dir == gpu::direction::copy ? a.packed : a.base) + (delta + begin);
    auto skew = static_cast<int32_t>(low_bits(target, 15));
    bool head = begin == block_begin || begin == a.first;
    w.first = skew == 0 || head ? -skew : 16 - skew;
    int32_t bytes = static_cast<int32_t>(end - begin) - w.first;
    w.count = begin < end && bytes > 0 ? (static_cast<uint32_t>(bytes) + 15) / 16 : 0;
    return w;
}

// Where word k of a run lies, and which of its bytes belong to the block, which ends at
// `block_end`.
struct target_word {
    const char *source;
    char *target;
    uint32_t low, high;
};
CUDA_NC_KERNEL target_word locate_word(const part &a, int64_t delta, const word_run &w, uint32_t k,
                                       uint32_t block_end) {
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

// Fills t->words. On the host lanes call it in order.
CUDA_NC_KERNEL void count_target_words(const part &a, const unit_cursor &s, uint32_t lane,
                                       unit_table *t) {
    uint32_t sum = 0;
    if (lane < table_blocks) {
        uint32_t begin = t->bound[lane] > s.at ? t->bound[lane] : s.at;
        uint32_t end = min_u32(t->bound[lane + 1], s.end);
        sum = words_of_block(a, t->delta[lane], t->bound[lane], begin, end).count;
    }
    sum_before(sum, lane, t->words);
}

// Scatters words first + lane, first + lane + 32, ... of the table's blocks, Unroll of them.
template <int Unroll>
CUDA_NC_KERNEL void scatter_from_table(const part &a, const unit_cursor &s, const unit_table &t,
                                       uint32_t first, uint32_t lane) {
    const uint32_t limit = t.words[table_blocks];
    quad_load<1> loaded[Unroll];
    target_word word[Unroll];
    bool whole[Unroll];  // all lanes' words are whole ones of one block
    CUDA_NC_UNROLL
    for (int u = 0; u < Unroll; ++u) {
        const uint32_t step = first + static_cast<uint32_t>(u) * warp_lanes, i = step + lane;
        if (step >= limit) {
            break;
        }
        const uint32_t stop = min_u32(step + warp_lanes, limit);
        uint32_t e = find_common_entry(t.words, step, lane);
        const uint32_t last = find_common_entry(t.words, stop - 1, lane);
        whole[u] = false;
        if (e == last) {
            uint32_t begin = t.bound[e] > s.at ? t.bound[e] : s.at;
            word_run w = words_of_block(a, t.delta[e], t.bound[e], begin, s.end);
            int32_t offset = w.first + static_cast<int32_t>((step - t.words[e]) * 16);
            whole[u] = offset >= 0 && stop - step == warp_lanes &&
                       begin + static_cast<uint32_t>(offset) + warp_lanes * 16 <= t.bound[e + 1];
            if (whole[u]) {
                target_word one = locate_word(a, t.delta[e], w, i - t.words[e], t.bound[e + 1]);
                word[u].target = one.target;
                loaded[u].load(one.source, 0, 16);
            }
        }
        if (!whole[u] && i < limit) {
            e = find_entry_between(t.words, i, e, last);
            uint32_t begin = t.bound[e] > s.at ? t.bound[e] : s.at;
            word_run w = words_of_block(a, t.delta[e], t.bound[e], begin, s.end);
            word[u] = locate_word(a, t.delta[e], w, i - t.words[e], t.bound[e + 1]);
            loaded[u].load(word[u].source, word[u].low, word[u].high);
        }
    }
    CUDA_NC_UNROLL
    for (int u = 0; u < Unroll; ++u) {
        const uint32_t step = first + static_cast<uint32_t>(u) * warp_lanes;
        if (step >= limit) {
            break;
        }
        if (whole[u]) {
            store_word<16>(word[u].target, loaded[u].join());
        } else if (step + lane < limit) {
            store_quad(word[u].target, loaded[u].join(), word[u].low, word[u].high);
        }
    }
}

CUDA_NC_KERNEL void scatter_unit(const part &a, unit_cursor s, unit_table *t, lanes_in_step lanes) {
    while (s.at < s.end) {
        lanes.each([&](uint32_t lane) { fill_table(a, s, lane, t); });
        lanes.each([&](uint32_t lane) { count_target_words(a, s, lane, t); });
        const uint32_t limit = t->words[table_blocks];
        for (uint32_t at = 0; at < limit; at += warp_lanes * unroll_table_words<1>) {
            lanes.each([&](uint32_t lane) {
                scatter_from_table<unroll_table_words<1>>(a, s, *t, at, lane);
            });
        }
        s.at = t->bound[table_blocks];
        s.block += table_blocks;
        lanes.each([](uint32_t) {});
    }
}

}  // namespace cuda_nc::exec
