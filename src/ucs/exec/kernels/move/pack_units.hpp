// Packs units by windows: each lane puts one aligned 16-byte word of the target together.
#pragma once

#include "ucs/exec/kernels/move/bytes.hpp"
#include "ucs/exec/kernels/move/unit_table.hpp"

namespace cuda_nc::exec {

// First offset of a window when packing; `skew`: bytes of the packed address beyond a multiple of
// 16.
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

// 16 bytes at `address`, a multiple of Align.
template <int Align>
CUDA_NC_KERNEL void load_whole(const char *address, quad_load<Align> *loaded) {
    if constexpr (Align == 8) {
        if (low_bits(address, 15) == 0) {
            quad value = load_word<16>(address);
            loaded->first = (static_cast<word<8>>(value.w[1]) << 32) | value.w[0];
            loaded->second = (static_cast<word<8>>(value.w[3]) << 32) | value.w[2];
            return;
        }
    }
    loaded->load(address, 0, 16);
}

// Packs windows first + lane, first + lane + 32, ... below `limit`, Unroll of them: first the loads
// of all, then the further blocks of windows that hold several.
template <int Align, int Unroll>
CUDA_NC_KERNEL void pack_from_table(const part &a, const unit_table &t, uint32_t first,
                                    uint32_t limit, uint32_t lane) {
    const uint32_t skew = low_bits(a.packed, 15);
    quad_load<Align> loaded[Unroll];
    uint32_t entry[Unroll];
    bool whole[Unroll];  // all lanes' windows lie in one block
    CUDA_NC_UNROLL
    for (int u = 0; u < Unroll; ++u) {
        const uint32_t step = first + static_cast<uint32_t>(u) * warp_lanes, w = step + lane;
        if (step >= limit) {
            break;
        }
        const uint32_t begin = window_begin(a, step, skew);
        const uint32_t stop = a.first + min_u32((step + warp_lanes) * 16 - skew, a.length);
        const uint32_t e = find_common_entry(t.bound, begin, lane);
        const uint32_t last = find_common_entry(t.bound, stop - 1, lane);
        whole[u] = e == last && e < table_blocks && stop - begin == warp_lanes * 16 &&
                   step + warp_lanes <= limit;
        if (whole[u]) {
            load_whole<Align>(a.base + (t.delta[e] + begin) + lane * 16, &loaded[u]);
        } else if (w < limit) {
            window_range r = range_of_window(a, w, skew);
            entry[u] = find_entry_between(t.bound, r.begin, e, last);
            loaded[u].load(a.base + (t.delta[entry[u]] + r.begin) - r.low, r.low,
                           r.low + min_u32(t.bound[entry[u] + 1] - r.begin, r.high - r.low));
        }
    }
    CUDA_NC_UNROLL
    for (int u = 0; u < Unroll; ++u) {
        const uint32_t step = first + static_cast<uint32_t>(u) * warp_lanes, w = step + lane;
        if (step >= limit) {
            break;
        }
        char *target = a.packed - skew + uint64_t{w} * 16;
        if (whole[u]) {
            store_word<16>(target, loaded[u].join());
        } else if (w < limit) {
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
            store_quad(target, value, r.low, r.high);
        }
    }
}

// Packs all windows of a unit. Every table holds at least one whole window.
template <int Align>
CUDA_NC_KERNEL void pack_unit(const part &a, unit_cursor s, unit_table *t, lanes_in_step lanes) {
    const uint32_t skew = low_bits(a.packed, 15);
    const uint32_t part_end = a.first + a.length;
    while (s.at < s.end) {
        lanes.each([&](uint32_t lane) { fill_table(a, s, lane, t); });
        const uint32_t covered = t->bound[table_blocks];
        uint32_t limit =
            covered == part_end ? s.end : min_u32(s.end, (covered - a.first + skew) / 16);
        for (uint32_t at = s.at; at < limit; at += warp_lanes * unroll_table_words<Align>) {
            lanes.each([&](uint32_t lane) {
                pack_from_table<Align, unroll_table_words<Align>>(a, *t, at, limit, lane);
            });
        }
        if (limit < s.end) {
            s.block += find_entry(t->bound, window_begin(a, limit, skew));
        }
        s.at = limit;
        lanes.each([](uint32_t) {});  // no lane fills the table while another reads it
    }
}

}  // namespace cuda_nc::exec
