// Moves a pair list. A warp takes runs of neighbouring pairs. While it moves one run, the next one
// is on its way to shared memory: a list in host memory is read across the bus, in a microsecond or
// two. Groups of lanes take a pair each, the smaller the shorter the pairs are.
#pragma once

#include "ucs/exec/kernels/move/warp.hpp"
#include "ucs/exec/kernels/move/word.hpp"
#include "ucs/gpu/layout_pairs.hpp"

namespace cuda_nc::exec {

struct pair_work {
    const gpu::block_pair *pairs;
    uint64_t count;
    uint32_t run;         // pairs that a warp takes at a time, 1 to warp_lanes
    uint32_t parts_log2;  // 2^parts_log2 warps share a pair; not 0: `run` is 1
};

// The same of pairs that two layouts make.
struct layout_pair_work {
    gpu::layout_pairs pairs;
    uint64_t count;
    uint32_t run;
    uint32_t parts_log2;
};

// One warp's: the run that moves, and the next one.
struct pair_table {
    gpu::block_pair runs[2][warp_lanes];
};

// Of the run that begins with pair `first`; 0 behind the last one.
template <class Work>
CUDA_NC_KERNEL uint32_t pairs_in_run(const Work &w, uint64_t first) {
    const uint64_t left = first < w.count ? w.count - first : 0;
    return left < w.run ? static_cast<uint32_t>(left) : w.run;
}

// Starts to copy the run that begins with pair `first` to `table`, in shared memory. All lanes call
// it. Ended by await_fetched_pairs() behind the next call.
CUDA_NC_KERNEL void fetch_pairs(const pair_work &w, uint64_t first, gpu::block_pair *table,
                                uint32_t lane) {
    const uint32_t number = pairs_in_run(w, first);
#ifdef __CUDA_ARCH__
    constexpr uint32_t words = sizeof(gpu::block_pair) / sizeof(word<8>);
    auto *from = reinterpret_cast<const word<8> *>(w.pairs + first);
    auto *to = reinterpret_cast<word<8> *>(table);
    CUDA_NC_UNROLL
    for (uint32_t step = 0; step < words; ++step) {
        const uint32_t i = step * warp_lanes + lane;
        if (i < number * words) {
#if __CUDA_ARCH__ >= 800
            asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(
                             static_cast<uint32_t>(__cvta_generic_to_shared(to + i))),
                         "l"(from + i)
                         : "memory");
#else
            to[i] = from[i];
#endif
        }
    }
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
#else
    if (lane == 0 && number != 0) {
        memcpy(table, w.pairs + first, number * sizeof(*table));
    }
#endif
}

// Each lane makes one.
CUDA_NC_KERNEL void fetch_pairs(const layout_pair_work &w, uint64_t first, gpu::block_pair *table,
                                uint32_t lane) {
    if (lane < pairs_in_run(w, first)) {
        table[lane] = w.pairs.at(first + lane);
    }
}

// Waits for all that this lane began to copy but by its last call. The other lanes' share is there
// after a barrier.
CUDA_NC_KERNEL void await_fetched_pairs() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group 1;" ::: "memory");
#endif
}

// Moves `left` words of 16 bytes, `step` bytes apart, Unroll at most; all loads, then all stores.
// Guarded: `left` may be less than Unroll. Alike: the source is aligned as the target is, and
// `shift` 0.
template <bool Alike, uint32_t Unroll, bool Guarded>
CUDA_NC_KERNEL void move_some_words(const char *source, char *target, uint32_t shift, uint32_t step,
                                    uint32_t left) {
    quad low[Unroll], high[Alike ? 1 : Unroll];
    CUDA_NC_UNROLL
    for (uint32_t u = 0; u < Unroll; ++u) {
        if constexpr (Guarded) {  // else what a register held before would have to be kept
            low[u] = quad{};
            high[Alike ? 0 : u] = quad{};
        }
        if (!Guarded || u < left) {
            low[u] = load_word<16>(source + u * step);
            if constexpr (!Alike) {
                high[u] = load_word<16>(source + u * step + 16);
            }
        }
    }
    CUDA_NC_UNROLL
    for (uint32_t u = 0; u < Unroll; ++u) {
        if (!Guarded || u < left) {
            if constexpr (Alike) {
                store_word<16>(target + u * step, low[u]);
            } else {
                store_word<16>(target + u * step, funnel(low[u], high[u], shift));
            }
        }
    }
}

// Writes `count` aligned words of 16 bytes by 2^lanes_log2 lanes, Unroll of them each at a time.
template <bool Alike, uint32_t Unroll>
CUDA_NC_KERNEL void move_aligned_words(const char *source, char *target, uint64_t count,
                                       uint32_t lane, uint32_t lanes_log2) {
    const uint32_t shift = Alike ? 0 : low_bits(source, 15), step = 16u << lanes_log2;
    source += uint64_t{lane} * 16 - shift;
    target += uint64_t{lane} * 16;
    // The lane's words.
    uint64_t left = lane < count ? ((count - lane - 1) >> lanes_log2) + 1 : 0;
    CUDA_NC_NO_UNROLL
    for (; left >= Unroll; left -= Unroll) {
        move_some_words<Alike, Unroll, false>(source, target, shift, step, Unroll);
        source += Unroll * step;
        target += Unroll * step;
    }
    if (Unroll > 1 && left != 0) {
        move_some_words<Alike, Unroll, true>(source, target, shift, step,
                                             static_cast<uint32_t>(left));
    }
}

constexpr uint32_t warp_log2 = 5;
constexpr uint32_t line_log2 = 3;  // lanes that read a line of 128 bytes at a time

// Moves a pair of at least one byte by 2^lanes_log2 lanes.
CUDA_NC_KERNEL void move_pair(const gpu::block_pair &pair, uint32_t lane, uint32_t lanes_log2) {
#ifdef __CUDA_ARCH__
    __builtin_assume(__isGlobal(pair.from) && __isGlobal(pair.to));  // saves an address check
#endif
    // From here on in aligned words of the target; `end` is where the pair ends among them.
    const uint32_t skew = low_bits(pair.to, 15);
    const char *source = pair.from - skew;
    char *target = pair.to - skew;
    const uint64_t end = skew + pair.length;
    const uint64_t whole_from = skew != 0 ? 1 : 0, whole_to = end / 16;
    // The words of the target that hold other bytes too, at the head and at the tail, by a lane
    // each.
    CUDA_NC_NO_UNROLL
    for (uint32_t edge = lane + (skew == 0 ? 1 : 0); edge < 2; edge += 1u << lanes_log2) {
        const uint64_t at = edge == 0 ? 0 : whole_to;
        const uint32_t low = edge == 0 ? skew : 0;
        const uint32_t high = edge == 0 && end > 16 ? 16 : static_cast<uint32_t>(end - at * 16);
        if (high != 0 && (edge == 0 || at >= whole_from)) {
            store_quad(target + at * 16, gather_quad<1>(source + at * 16, low, high), low, high);
        }
    }
    if (whole_to <= whole_from) {
        return;
    }
    const uint64_t count = whole_to - whole_from;
    source += whole_from * 16;
    target += whole_from * 16;
    const bool alike = low_bits(source, 15) == 0;
    // Words in flight of a lane. Those that are not aligned alike take two loads each.
    constexpr uint32_t deep = 8, deep_shifted = 4;
    if (lanes_log2 == warp_log2) {
        alike ? move_aligned_words<true, deep>(source, target, count, lane, warp_log2)
              : move_aligned_words<false, deep_shifted>(source, target, count, lane, warp_log2);
    } else if (lanes_log2 == line_log2) {
        alike ? move_aligned_words<true, deep>(source, target, count, lane, line_log2)
              : move_aligned_words<false, deep_shifted>(source, target, count, lane, line_log2);
    } else {
        alike ? move_aligned_words<true, 1>(source, target, count, lane, lanes_log2)
              : move_aligned_words<false, 1>(source, target, count, lane, lanes_log2);
    }
}

// Longest pair, in bytes, that moves beside shorter ones rather than beside longer ones.
constexpr uint32_t short_pair = 64;

// log2 of the lanes that take a pair, in a run of `number` pairs, the longest of `longest` bytes.
CUDA_NC_KERNEL uint32_t pair_lanes_log2(uint32_t longest, uint32_t number) {
    constexpr uint32_t most_of_line = 2048;
    if (longest <= short_pair) {
        return log2_ceil(divide_up(longest, 16));
    }
    return longest <= most_of_line && number > 2 ? line_log2 : warp_log2;
}

// Bytes of a pair that is short, or is not, as wanted; of another one 0.
CUDA_NC_KERNEL uint32_t length_among(const gpu::block_pair &pair, bool shorts) {
    const uint32_t length =
        pair.length < UINT32_MAX ? static_cast<uint32_t>(pair.length) : UINT32_MAX;
    return (length <= short_pair) == shorts ? length : 0;
}

// Bytes of the longest of the short pairs, or of the others; 0: there are none. All lanes call it.
CUDA_NC_KERNEL uint32_t longest_pair(const gpu::block_pair *pairs, uint32_t number, bool shorts,
                                     uint32_t lane) {
    uint32_t longest = 0;
#ifdef __CUDA_ARCH__
    if (lane < number) {
        longest = length_among(pairs[lane], shorts);
    }
#if __CUDA_ARCH__ >= 800
    longest = __reduce_max_sync(0xffffffffu, longest);
#else
    CUDA_NC_UNROLL
    for (uint32_t step = warp_lanes / 2; step != 0; step /= 2) {
        const uint32_t other = __shfl_xor_sync(0xffffffffu, longest, step);
        longest = longest < other ? other : longest;
    }
#endif
#else  // the lanes run one after the other: each looks at all pairs
    static_cast<void>(lane);
    for (uint32_t i = 0; i < number; ++i) {
        const uint32_t length = length_among(pairs[i], shorts);
        longest = length > longest ? length : longest;
    }
#endif
    return longest;
}

// What a lane does for a run. All lanes call it.
CUDA_NC_KERNEL void move_pairs(const gpu::block_pair *pairs, uint32_t number, uint32_t lane) {
    CUDA_NC_NO_UNROLL
    for (uint32_t pass = 0; pass < 2; ++pass) {
        const bool shorts = pass == 0;
        const uint32_t longest = longest_pair(pairs, number, shorts, lane);
        if (longest == 0) {
            continue;
        }
        const uint32_t log2 = pair_lanes_log2(longest, number);
        CUDA_NC_NO_UNROLL
        for (uint32_t i = lane >> log2; i < number; i += warp_lanes >> log2) {
            const gpu::block_pair pair = pairs[i];
            if (length_among(pair, shorts) != 0) {
                move_pair(pair, lane & ((1u << log2) - 1), log2);
            }
        }
    }
}

// What a warp moves at a time of a pair that it shares with others.
constexpr uint32_t pair_piece = 4096;

// What a lane does for a pair that 2^parts_log2 warps share: it moves the pieces part,
// part + 2^parts_log2, ...
CUDA_NC_KERNEL void move_pieces(const gpu::block_pair &pair, uint32_t part, uint32_t parts_log2,
                                uint32_t lane) {
    // Pieces begin at aligned words of the target; the first one `skew` bytes before the pair.
    const uint32_t skew = low_bits(pair.to, 15);
    const uint64_t end = pair.length == 0 ? 0 : pair.length + skew;
    CUDA_NC_NO_UNROLL
    for (uint64_t at = uint64_t{part} * pair_piece; at < end; at += pair_piece << parts_log2) {
        const uint64_t begin = at != 0 ? at - skew : 0;
        const uint64_t stop = (end - at < pair_piece ? end : at + pair_piece) - skew;
        move_pair({pair.from + begin, pair.to + begin, stop - begin}, lane, warp_log2);
    }
}

}  // namespace cuda_nc::exec
