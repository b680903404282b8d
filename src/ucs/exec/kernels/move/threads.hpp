// What one thread of a kernel does. The same code runs on a GPU and, in tests, on a CPU, one thread
// after the other.
#pragma once

#include <type_traits>

#include "ucs/exec/kernels/move/blocks.hpp"
#include "ucs/exec/kernels/move/pairs.hpp"
#include "ucs/exec/kernels/move/pieces.hpp"
#include "ucs/exec/kernels/move/tiles.hpp"
#include "ucs/exec/kernels/move/units.hpp"
#include "ucs/exec/kernels/plan/policy.hpp"

namespace cuda_nc::exec {

struct thread_place {
    uint32_t thread, threads;     // of its thread block
    uint32_t thread_block, grid;  // of the launch; `grid` is their number
};

// per_thread_block is at most Unroll words for each thread; the number of threads is a power of
// two, at least a warp. A warp moves neighbouring words.
template <class Locator, int W, int Unroll = unroll_deep<Locator, W>>
CUDA_NC_KERNEL void words_thread(const part &a, uint32_t per_thread_block, const thread_place &at) {
    const word_range r = split_words<W>(a);
    if (at.thread_block == 0) {
        move_edges<Locator>(a, r, at.thread, at.threads);
    }
    const uint32_t share =
        Unroll == 1 ? warp_lanes : (per_thread_block >> log2_floor(at.threads)) * warp_lanes;
    const uint32_t ahead = at.thread / warp_lanes * share, lane = at.thread % warp_lanes;
    for (uint32_t begin = at.thread_block * per_thread_block; begin < r.count;
         begin += at.grid * per_thread_block) {
        uint32_t own = begin + ahead;
        move_words<Locator, W, Unroll>(a, r, own + lane, min_u32(own + share, r.count));
    }
}

template <class Locator>
CUDA_NC_KERNEL void windows_thread(const part &a, uint32_t per_thread_block,
                                   const thread_place &at) {
    const uint32_t count = count_windows(a);
    for (uint32_t begin = at.thread_block * per_thread_block; begin < count;
         begin += at.grid * per_thread_block) {
        uint32_t limit = count - begin < per_thread_block ? count : begin + per_thread_block;
        for (uint32_t i = begin + at.thread; i < limit; i += at.threads) {
            move_window<Locator>(a, i);
        }
    }
}

template <class Locator>
CUDA_NC_KERNEL void pieces_thread(const part &a, uint32_t per_thread_block, const piece_counts &n,
                                  const thread_place &at) {
    for (uint32_t begin = at.thread_block * per_thread_block; begin < n.all_words;
         begin += at.grid * per_thread_block) {
        uint32_t limit =
            n.all_words - begin < per_thread_block ? n.all_words : begin + per_thread_block;
        for (uint32_t i = begin + at.thread; i < limit; i += at.threads * unroll_windows) {
            scatter_words<Locator, unroll_windows>(a, n, i, at.threads, limit);
        }
    }
    for (uint32_t begin = at.thread_block * per_thread_block; begin < n.all_edges;
         begin += at.grid * per_thread_block) {
        uint32_t limit =
            n.all_edges - begin < per_thread_block ? n.all_edges : begin + per_thread_block;
        for (uint32_t i = begin + at.thread; i < limit; i += at.threads * unroll_windows) {
            scatter_edges<Locator, unroll_windows>(a, n, i, at.threads, limit);
        }
    }
}

template <int W>
CUDA_NC_KERNEL void blocks_thread(const part &a, const block_lanes &n, const thread_place &at) {
    for (uint32_t i = at.thread_block * at.threads + at.thread; i < n.items;
         i += at.grid * at.threads) {
        move_block<W>(a, n, i);
    }
}

// What one warp does; `table` is its own. A unit has 2^unit_log2 bytes.
template <bool Packing, int Align>
CUDA_NC_KERNEL void units_warp(const part &a, uint32_t unit_log2, const thread_place &at,
                               unit_table *table, lanes_in_step lanes) {
    const uint32_t count = count_units(a, unit_log2);
    const uint32_t warps = at.threads / warp_lanes, warp = at.thread / warp_lanes;
    for (uint32_t unit = at.thread_block * warps + warp; unit < count; unit += at.grid * warps) {
        move_unit<Packing, Align>(a, unit, unit_log2, table, lanes);
    }
}

// The same by words of W bytes, aligned alike on both sides; unpack, copy.
template <int W>
CUDA_NC_KERNEL void word_units_warp(const part &a, uint32_t unit_log2, const thread_place &at,
                                    unit_table *table, lanes_in_step lanes) {
    const word_range r = split_words<W>(a);
    if (at.thread_block == 0 && at.thread / warp_lanes == 0) {
        lanes.each([&](uint32_t lane) { move_edges<varying_locator>(a, r, lane, warp_lanes); });
    }
    const uint32_t count = (r.count * W + (1u << unit_log2) - 1) >> unit_log2;
    const uint32_t warps = at.threads / warp_lanes, warp = at.thread / warp_lanes;
    for (uint32_t unit = at.thread_block * warps + warp; unit < count; unit += at.grid * warps) {
        scatter_unit_words<W>(a, r, unit, unit_log2, table, lanes);
    }
}

// What one warp does of a pair list; `table` is its own. Shared: 2^parts_log2 warps share each
// pair; else parts_log2 is 0.
template <bool Shared, class Work>
CUDA_NC_KERNEL void pairs_warp(const Work &w, const thread_place &at, pair_table *table,
                               lanes_in_step lanes) {
    const uint32_t warps = at.threads / warp_lanes;
    const uint32_t number = at.thread_block * warps + at.thread / warp_lanes;
    const uint32_t parts_log2 = Shared ? w.parts_log2 : 0;
    const uint32_t teams = at.grid * warps >> parts_log2, team = number >> parts_log2;
    if (team >= teams) {
        return;
    }
    const uint64_t step = uint64_t{teams} * w.run;
    uint64_t first = uint64_t{team} * w.run;
    lanes.each([&](uint32_t lane) { fetch_pairs(w, first, table->runs[0], lane); });
    for (uint32_t turn = 0; first < w.count; turn ^= 1) {
        lanes.each([&](uint32_t lane) {
            fetch_pairs(w, first + step, table->runs[turn ^ 1], lane);
            await_fetched_pairs();
        });
        lanes.each([&](uint32_t lane) {
            if constexpr (Shared) {
                const uint32_t part = number & ((1u << parts_log2) - 1);
                move_pieces(table->runs[turn][0], part, parts_log2, lane);
            } else {
                move_pairs(table->runs[turn], pairs_in_run(w, first), lane);
            }
        });
        first += step;
    }
}

// Calls action(packing, align, width), all std::integral_constants, for units whose addresses
// 2^align_log2 divides. width: bytes of words that are moved as they are; 0: words are put
// together.
template <class Action>
auto with_unit_kind(bool packing, unsigned align_log2, Action &&action) {
    using yes = std::true_type;
    using no = std::false_type;
    using one = std::integral_constant<int, 1>;
    if (packing) {
        return align_log2 >= 3 ? action(yes(), std::integral_constant<int, 8>(),
                                        std::integral_constant<int, 0>())
                               : action(yes(), one(), std::integral_constant<int, 0>());
    }
    switch (align_log2) {
        case 0:
        case 1:
            return action(no(), one(), std::integral_constant<int, 0>());
        case 2:
            return action(no(), one(), std::integral_constant<int, 4>());
        case 3:
            return action(no(), one(), std::integral_constant<int, 8>());
        default:
            return action(no(), one(), std::integral_constant<int, 16>());
    }
}

// A tile, where it lies, and whether it moves by pairs.
template <int W>
struct tile_work {
    uint32_t tile;
    tile_origin origin;
    bool pairs;

    CUDA_NC_KERNEL tile_work(const part &a, const tile_shape &s, const word_range &r,
                             uint32_t tile_)
        : tile(tile_),
          origin(locate_tile(a, s, tile, tile_dim<W>)),
          pairs(tile_takes_pairs<W>(a, s, r, origin, tile)) {}
};

// Moves a tile into (Loading) or out of shared memory; a barrier follows each.
template <int W, bool Loading>
CUDA_NC_KERNEL void tile_thread(const part &a, const tile_shape &s, const word_range &r,
                                const tile_work<W> &t, uint32_t thread, word<W> *shared) {
    if (t.tile >= s.count) {
        return;
    }
    const bool laid_out = (a.dir == gpu::direction::pack) == Loading;
    if constexpr (has_pairs<W>) {
        if (t.pairs) {
            auto *pairs = reinterpret_cast<word<2 * W> *>(shared);
            if (laid_out) {
                exchange_pairs<W, true, Loading>(a, s, t.origin, thread, pairs);
            } else {
                exchange_pairs<W, false, Loading>(a, s, t.origin, thread, pairs);
            }
            return;
        }
    }
    if (laid_out) {
        exchange_tile<W, true, Loading>(a, s, r, t.origin, thread, shared);
    } else {
        exchange_tile<W, false, Loading>(a, s, r, t.origin, thread, shared);
    }
}

template <class Locator>
struct locator_tag {
    using type = Locator;
};

// Calls action(locator_tag<L>) for the locator of `kind`.
template <class Action>
auto with_strided_locator(locator_kind kind, Action &&action) {
    switch (kind) {
        case locator_kind::dims0:
            return action(locator_tag<strided_locator<0>>());
        case locator_kind::dims1:
            return action(locator_tag<strided_locator<1>>());
        case locator_kind::dims2:
            return action(locator_tag<strided_locator<2>>());
        case locator_kind::dims3:
            return action(locator_tag<strided_locator<3>>());
        default:
            return action(locator_tag<strided_locator<-1>>());
    }
}
template <class Action>
auto with_list_locator(locator_kind kind, Action &&action) {
    return kind == locator_kind::uniform ? action(locator_tag<uniform_locator>())
                                         : action(locator_tag<varying_locator>());
}
// The same for all locators of blocks of one length.
template <class Action>
auto with_uniform_locator(locator_kind kind, Action &&action) {
    return kind == locator_kind::uniform ? action(locator_tag<uniform_locator>())
                                         : with_strided_locator(kind, action);
}
// The same for all locators of windows in pipes and pulls.
template <class Action>
auto with_window_locator(locator_kind kind, Action &&action) {
    return kind == locator_kind::mixed ? action(locator_tag<mixed_locator>())
                                       : with_uniform_locator(kind, action);
}
// The same for all locators of words in pipes and pulls.
template <class Action>
auto with_mover_locator(locator_kind kind, Action &&action) {
    return kind == locator_kind::progression ? action(locator_tag<progression_locator>())
                                             : with_uniform_locator(kind, action);
}
constexpr bool is_strided(locator_kind kind) {
    return kind < locator_kind::uniform;
}

// Calls action(std::integral_constant<int, W>) for words of 2^log2 bytes.
template <class Action>
auto with_word(unsigned log2, Action &&action) {
    switch (log2) {
        case 0:
            return action(std::integral_constant<int, 1>());
        case 1:
            return action(std::integral_constant<int, 2>());
        case 2:
            return action(std::integral_constant<int, 4>());
        case 3:
            return action(std::integral_constant<int, 8>());
        default:
            return action(std::integral_constant<int, 16>());
    }
}

}  // namespace cuda_nc::exec
