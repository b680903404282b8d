// Unpacks and copies units by words of W bytes that lie alike on both sides.
#pragma once

#include "ucs/exec/kernels/move/unit_table.hpp"
#include "ucs/exec/kernels/move/words.hpp"

namespace cuda_nc::exec {

// The block of the last word, and the offset up to which it holds all words: no search is needed
// there.
struct block_ahead {
    int64_t delta;
    uint32_t end;
};

// Scatters words of W bytes at offsets begin + lane * W, begin + (lane + 32) * W, ... below `end`,
// Unroll of them.
template <int W, int Unroll>
CUDA_NC_KERNEL void scatter_words_from_table(const part &a, const unit_table &t, block_ahead *ahead,
                                             uint32_t begin, uint32_t end, uint32_t lane) {
    constexpr uint32_t step = warp_lanes * W;
    const bool copy = a.dir == gpu::direction::copy;
    char *laid_out = copy ? a.packed : a.base;
    const char *linear = packed_at(a, begin) + lane * W;
    word<W> value[Unroll];
    char *target[Unroll];
    CUDA_NC_UNROLL
    for (int u = 0; u < Unroll; ++u) {
        const uint32_t first = begin + static_cast<uint32_t>(u) * step;
        if (first >= end) {
            break;
        }
        const uint32_t p = first + lane * W;
        int64_t delta = ahead->delta;
        if (first + step > ahead->end) {
            const uint32_t e = find_common_entry(t.bound, first, lane);
            const uint32_t last = find_common_entry(t.bound, min_u32(first + step, end) - 1, lane);
            delta = t.delta[find_entry_between(t.bound, p < end ? p : first, e, last)];
            ahead->delta = t.delta[last];
            ahead->end = t.bound[last + 1];
        }
        if (p < end) {
            target[u] = laid_out + (delta + p);
            value[u] = load_word<W>(copy ? a.base + (delta + p)
                                         : linear + static_cast<uint32_t>(u) * step);
        }
    }
    CUDA_NC_UNROLL
    for (int u = 0; u < Unroll; ++u) {
        if (begin + static_cast<uint32_t>(u) * step + lane * W < end) {
            store_word<W>(target[u], value[u]);
        }
    }
}

template <int W>
constexpr int unroll_unit_words = W == 16 ? 2 : 4;

template <int W>
CUDA_NC_KERNEL void scatter_unit_words(const part &a, const word_range &r, uint32_t unit,
                                       uint32_t unit_log2, unit_table *t, lanes_in_step lanes) {
    unit_cursor s;
    s.at = r.begin + (unit << unit_log2);
    s.end = r.begin + min_u32((unit + 1) << unit_log2, r.count * W);
    varying_locator::find_block_near(a, s.at, table_slack, &s.block, &s.pass);
    while (s.at < s.end) {
        lanes.each([&](uint32_t lane) { fill_table(a, s, lane, t); });
        const uint32_t end = min_u32(s.end, t->bound[table_blocks]);
        block_ahead ahead{0, 0};
        CUDA_NC_NO_UNROLL
        for (; s.at < end; s.at += warp_lanes * W * unroll_unit_words<W>) {
            lanes.each([&](uint32_t lane) {
                block_ahead own = ahead;
                scatter_words_from_table<W, unroll_unit_words<W>>(a, *t, &own, s.at, end, lane);
                lanes.carry(lane, own, &ahead);
            });
        }
        s.at = end;
        s.block += table_blocks;
        lanes.each([](uint32_t) {});  // no lane fills the table while another reads it
    }
}

}  // namespace cuda_nc::exec
