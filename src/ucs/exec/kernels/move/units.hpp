// Lists of blocks of different lengths. A warp takes a unit, a stretch of packed bytes, finds its
// first block once, and puts the next blocks into a table in shared memory; then its lanes share
// the unit's words evenly, whatever the blocks' lengths, and find their blocks in the table. Where
// words of W bytes lie alike on both sides they are just that; else aligned words of 16 bytes of
// the target, which are put together.
//
// After the warp-per-unit idea of Wu et al. (HPDC 2016), with words in place of blocks as shares.
#pragma once

#include "ucs/exec/kernels/move/bytes.hpp"
#include "ucs/exec/kernels/move/words.hpp"

namespace cuda_nc::exec {

constexpr uint32_t warp_lanes = 32;
// One less than lanes, each of which fetches one block: the last says where the others end.
constexpr uint32_t table_blocks = warp_lanes - 1;
// Blocks in front of the first that is wanted, at most. 17, which a 16-byte word may touch, are
// left and more.
constexpr uint32_t table_slack = 8;

// A run of blocks of a list, in the order of the stream. Block i holds offsets
// [bound[i], bound[i + 1]), clipped to the part; offset p of it lies at displacement delta[i] + p.
struct unit_table {
    int64_t delta[warp_lanes];
    uint32_t bound[warp_lanes];
    uint32_t words[warp_lanes];  // unpack: target words before block i
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
    // Keeps what every lane has found alike for the next action: on the host, once all have run.
    template <class Value>
    CUDA_NC_KERNEL static void carry(uint32_t of_lane, const Value &found, Value *kept) {
#ifdef __CUDA_ARCH__
        static_cast<void>(of_lane);
        *kept = found;
#else
        if (of_lane == warp_lanes - 1) {
            *kept = found;
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

// The last index whose entry is at most `value`; that of 0 is.
CUDA_NC_KERNEL uint32_t find_entry(const uint32_t *entries, uint32_t value) {
    uint32_t index = 0;
    CUDA_NC_UNROLL
    for (uint32_t step = warp_lanes / 2; step != 0; step /= 2) {
        index += entries[index + step] <= value ? step : 0;
    }
    return index;
}

// The same for a value that all lanes give alike; all must call it.
CUDA_NC_KERNEL uint32_t find_common_entry(const uint32_t *entries, uint32_t value, uint32_t lane) {
#ifdef __CUDA_ARCH__
    return static_cast<uint32_t>(__popc(__ballot_sync(0xffffffffu, entries[lane] <= value))) - 1;
#else
    static_cast<void>(lane);
    return find_entry(entries, value);
#endif
}

// The same for a value between those of entries `first` and `last`.
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

// Pack: windows first + lane, first + lane + 32, ... below `limit`, Unroll of them: all first
// loads, then the rest of words that hold several blocks.
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

// sums[l]: the sum of what the lanes below l give; lanes in order on the host.
CUDA_NC_KERNEL void sum_before(uint32_t mine, uint32_t lane, uint32_t *sums) {
#ifdef __CUDA_ARCH__
    uint32_t sum = mine;
    CUDA_NC_UNROLL
    for (uint32_t step = 1; step < warp_lanes; step *= 2) {
        uint32_t before = __shfl_up_sync(0xffffffffu, sum, step);
        sum += lane >= step ? before : 0;
    }
    sums[lane] = sum - mine;
#else
    if (lane == 0) {
        sums[0] = 0;
    }
    if (lane + 1 < warp_lanes) {
        sums[lane + 1] = sums[lane] + mine;
    }
#endif
}

// Fills t->words; lanes in order on the host.
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

// Items first + lane, first + lane + 32, ..., Unroll of them.
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
            block_words w = words_of_block(a, t.delta[e], t.bound[e], begin, s.end);
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
            block_words w = words_of_block(a, t.delta[e], t.bound[e], begin, s.end);
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

template <int Align>
constexpr int unroll_table_words = Align == 1 ? 2 : 4;

// All windows of a unit; every round ends with a table that holds at least one whole window.
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
        lanes.each([](uint32_t) {});  // nobody fills while another reads
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

// Where the words of a unit go on: a block, and up to which offset it holds all of them.
struct block_ahead {
    int64_t delta;
    uint32_t end;
};

// Unpack, copy: words of W bytes at offsets begin + lane * W, begin + (lane + 32) * W, ... below
// `end`, Unroll of them.
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
        lanes.each([](uint32_t) {});  // nobody fills while another reads
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
        varying_locator::find_block_near(a, window_begin(a, s.at, skew), table_slack, &s.block,
                                         &s.pass);
        pack_unit<Align>(a, s, t, lanes);
    } else {
        s.at = a.first + (unit << unit_log2);
        s.end = a.first + min_u32((unit + 1) << unit_log2, a.length);
        varying_locator::find_block_near(a, s.at, table_slack, &s.block, &s.pass);
        scatter_unit(a, s, t, lanes);
    }
}

}  // namespace cuda_nc::exec
