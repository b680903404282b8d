#include "ucs/exec/kernels/plan/policy.hpp"

#include <algorithm>
#include <cstdlib>

#include "ucs/exec/kernels/move/bytes.hpp"
#include "ucs/exec/kernels/move/threads.hpp"
#include "ucs/exec/kernels/plan/choose.hpp"

namespace cuda_nc::exec {
namespace {

// A limit on multiprocessors holds only where a thread block fills one: the hardware spreads
// smaller thread blocks over all of them.
constexpr uint32_t limited_threads = 1024;

}  // namespace

unsigned common_align_log2(const part &a, unsigned layout_align_log2) noexcept {
    auto base = reinterpret_cast<uintptr_t>(a.base);
    auto packed = reinterpret_cast<uintptr_t>(a.packed);
    if (a.dir != gpu::direction::copy) {
        packed -= a.first;  // where offset 0 would lie
    }
    if (!a.list) {  // the part may be better aligned than the whole layout
        layout_align_log2 = a.num_dims == 0 ? 4 : trailing_zeros(a.block_length, 4);
        for (unsigned d = 0; d < a.num_dims; ++d) {
            layout_align_log2 = std::min(
                layout_align_log2, trailing_zeros(static_cast<uintptr_t>(a.dims[d].stride), 4));
        }
    }
    return std::min(layout_align_log2, trailing_zeros(base | packed, 4));
}

namespace {

// Most bytes of blocks that move by words of 1, 2 and 4 bytes.
using word_limits = uint32_t gpu::kernel_rules::*const[3];

bool words_pay(const gpu::kernel_rules &rules, unsigned word_log2, uint32_t block) {
    static constexpr word_limits most = {&gpu::kernel_rules::pack_words_1,
                                         &gpu::kernel_rules::pack_words_2,
                                         &gpu::kernel_rules::pack_words_4};
    return word_log2 >= 3 || block <= rules.*most[word_log2];
}

bool words_scatter(const gpu::kernel_rules &rules, const part &a, unsigned word_log2) {
    static constexpr word_limits most[] = {
        {&gpu::kernel_rules::unpack_words_1, &gpu::kernel_rules::unpack_words_2,
         &gpu::kernel_rules::unpack_words_4},
        {&gpu::kernel_rules::vector_words_1, &gpu::kernel_rules::vector_words_2,
         &gpu::kernel_rules::vector_words_4}};
    const bool vector = !a.list && a.num_dims == 1;
    return word_log2 >= 3 || a.block_length <= rules.*most[vector ? 1 : 0][word_log2];
}

locator_kind choose_locator(const part &a) {
    if (a.list) {
        return a.block_length != 0 ? locator_kind::uniform : locator_kind::varying;
    }
    return a.num_dims <= 3 ? static_cast<locator_kind>(a.num_dims) : locator_kind::any_dims;
}

// Counts the most whole words that any block can have, over all alignments of blocks in the target,
// and the lanes for the bytes outside of them.
piece_counts count_pieces(const part &a, unsigned layout_align_log2) {
    unsigned align_log2 = layout_align_log2;
    if (!a.list) {
        align_log2 = 4;
        for (unsigned d = 0; d < a.num_dims; ++d) {
            align_log2 =
                std::min(align_log2, trailing_zeros(static_cast<uintptr_t>(a.dims[d].stride), 4));
        }
    }
    const char *target = a.dir == gpu::direction::copy ? a.packed : a.base;
    const uint32_t step = 1u << align_log2, length = std::min(a.block_length, a.length);
    uint32_t words = 0, edges = 1;
    for (uint32_t skew = low_bits(target, step - 1); skew < 16; skew += step) {
        uint32_t head = std::min((16 - skew) & 15, length), whole = (length - head) / 16;
        words = std::max(words, whole);
        edges = std::max(edges, length - whole * 16);
    }
    // A block cut by an end of the part is shorter and may begin at any alignment.
    const uint32_t from = a.by_block.quotient(a.first);
    const uint32_t to = a.by_block.quotient(a.first + a.length - 1);
    if (from * a.block_length != a.first || (to - from + 1) * a.block_length != a.length) {
        words = std::max(words, length / 16);
    }
    piece_counts n;
    const uint32_t blocks = to - from + 1;
    n.by_words = fast_divide32(std::max(1u, words));
    n.lanes_log2 = log2_ceil(edges);
    n.all_words = blocks * words;
    n.all_edges = blocks << n.lanes_log2;
    return n;
}

// log2 of the bytes of a unit, a warp's share: about `blocks` blocks, but enough words for all
// lanes and enough units for all multiprocessors.
uint32_t choose_unit_log2(const part &a, unsigned num_sms, uint32_t blocks, uint32_t most) {
    const uint64_t mean = a.list_size / a.num_blocks + 1;
    uint32_t log2 = 9;
    while (log2 < most && (uint64_t{1} << log2) < mean * blocks &&
           (a.length >> (log2 + 1)) > uint64_t{num_sms} * 32) {
        ++log2;
    }
    return log2;
}

// See kernel_rules::half_line_reserve: for unpacking blocks of half a line or less that lie apart.
uint32_t choose_reserve(const part &a, const kernel_choice &c, const kernel_limits &limits) {
    const bool half_lines = !a.list && a.num_dims == 1 && a.block_length <= 64 &&
                            magnitude(a.dims[0].stride) >= 2 * uint64_t{a.block_length};
    return c.word_log2 == 4 && !c.deep && a.dir != gpu::direction::pack && half_lines &&
                   a.length > limits.l2_size
               ? limits.rules->half_line_reserve
               : 0;
}

template <int W>
uint32_t count_words(const part &a) {
    return split_words<W>(a).count;
}

uint32_t count_words(const part &a, unsigned word_log2) {
    static constexpr uint32_t (*by_log2[])(const part &) = {
        count_words<1>, count_words<2>, count_words<4>, count_words<8>, count_words<16>};
    return by_log2[word_log2](a);
}

// Items that a thread moves at a time: fewer for a small message, so that all multiprocessors take
// part.
uint32_t spread(uint32_t items, uint32_t unroll, uint32_t threads, unsigned num_sms) {
    uint64_t at_once = uint64_t{threads} * std::max(1u, num_sms) * 2;
    return static_cast<uint32_t>(
        std::min<uint64_t>(unroll, std::max<uint64_t>(1, divide_up<uint64_t>(items, at_once))));
}

// See unroll_words.
template <class Locator, int W>
uint32_t most_loads(bool deep) {
    return static_cast<uint32_t>(deep ? unroll_words<Locator, W, true>
                                      : unroll_words<Locator, W, false>);
}
uint32_t most_loads(const kernel_choice &c) {
    return with_word(c.word_log2, [&](auto width) {
        constexpr int w = decltype(width)::value;
        return c.locator == locator_kind::uniform ? most_loads<uniform_locator, w>(c.deep)
               : c.locator == locator_kind::dims1 ? most_loads<strided_locator<1>, w>(c.deep)
                                                  : most_loads<strided_locator<-1>, w>(c.deep);
    });
}

}  // namespace

kernel_choice choose_kernel(const part &a, unsigned layout_align_log2, const kernel_limits &limits,
                            unsigned max_sms) noexcept {
    const gpu::kernel_rules &rules = *limits.rules;
    const bool packing = a.dir == gpu::direction::pack;
    kernel_choice c;
    c.threads = max_sms != 0 ? limited_threads : rules.word_threads;
    const unsigned num_sms = max_sms != 0 ? max_sms : limits.num_sms;
    const unsigned align_log2 = common_align_log2(a, layout_align_log2);
    c.locator = choose_locator(a);
    if (choose_tiles(a, align_log2, rules.tile_width, &c)) {
        // Each group of tile_threads threads has its own tile in shared memory. A thread block is
        // one group, unless it is to fill a multiprocessor.
        c.items = c.tiles.count;
        c.per_thread_block = max_sms == 0 ? 1 : with_word(c.word_log2, [](auto width) {
            return most_tiles<decltype(width)::value>;
        });
        c.threads = c.per_thread_block * tile_threads;
    } else if (c.locator == locator_kind::varying && choose_blocks(a, align_log2, rules, &c)) {
        c.items = c.blocks.items;
        c.per_thread_block = c.threads;
    } else if (c.locator == locator_kind::varying) {
        c.how = method::units;
        c.word_log2 = static_cast<uint8_t>(align_log2);
        const bool by_words = !packing && align_log2 >= 2;
        c.unit_log2 = choose_unit_log2(a, num_sms, rules.unit_blocks,
                                       by_words ? rules.word_unit_log2 : rules.unit_log2);
        if (max_sms == 0) {
            c.threads = rules.unit_threads;
        } else if (by_words) {
            c.threads = word_unit_threads;
        }
        c.items = count_units(a, c.unit_log2);
        c.per_thread_block = c.threads / warp_lanes;
    } else if (packing ? words_pay(rules, align_log2, a.block_length)
                       : words_scatter(rules, a, align_log2)) {
        c.how = method::words;
        c.word_log2 = static_cast<uint8_t>(align_log2);
        c.items = count_words(a, align_log2);
        c.deep =
            max_sms != 0 || ((packing ? rules.pack_deep : rules.unpack_deep) >> align_log2 & 1);
        c.reserve = choose_reserve(a, c, limits);
        const uint32_t unroll = most_loads(c);
        c.per_thread_block = c.threads * spread(c.items, unroll, c.threads, num_sms);
    } else {
        c.threads = max_sms != 0 ? limited_threads : rules.piece_threads;
        c.how = packing ? method::windows : method::pieces;
        if (packing) {
            c.items = count_windows(a);
        } else {
            c.pieces = count_pieces(a, layout_align_log2);
            c.items = std::max(c.pieces.all_words, c.pieces.all_edges);
        }
        // A window's loads wait for each other: the more threads the better.
        const uint32_t share = packing && max_sms == 0 ? 1 : unroll_windows;
        c.per_thread_block = c.threads * spread(c.items, share, c.threads, num_sms);
    }
    c.grid = std::max<uint32_t>(
        1, static_cast<uint32_t>(divide_up<uint64_t>(c.items, c.per_thread_block)));
    if (max_sms != 0) {
        c.grid = std::min(c.grid, max_sms);
    }
    return c;
}

void join_thread_blocks(kernel_choice *c, uint32_t most) noexcept {
    const uint32_t limit = c->how == method::tiles   ? c->threads
                           : c->how == method::units ? 512
                                                     : 1024;
    const uint32_t wanted = most / 2;  // each thread block that tells of its end costs some time
    kernel_choice joined = *c;
    if (c->how == method::words) {
        const uint32_t most_items = joined.threads * most_loads(joined);
        while (joined.grid > wanted && joined.per_thread_block * 2 <= most_items) {
            joined.per_thread_block *= 2;
            joined.grid = divide_up(joined.items, joined.per_thread_block);
        }
    }
    while (joined.grid > wanted && joined.threads * 2 <= limit) {
        joined.threads *= 2;
        joined.per_thread_block *= 2;
        joined.grid = divide_up(joined.items, joined.per_thread_block);
    }
    if (joined.grid <= most) {
        *c = joined;
    }
}

kernel_choice choose_mover(const part &a, unsigned layout_align_log2,
                           uint32_t chunk_size) noexcept {
    static constexpr uint32_t most[] = {
        2, 8, 48};  // bytes of a block, by word; while the link is the limit
    // For longer chunks the reads of tables hardly count, and units have more loads in flight.
    constexpr uint32_t longest_progression = 12 << 10;
    kernel_choice c;
    const unsigned align_log2 = common_align_log2(a, layout_align_log2);
    c.word_log2 = static_cast<uint8_t>(align_log2);
    c.locator = choose_locator(a);
    if (c.locator != locator_kind::varying) {
        const bool by_words = align_log2 >= 3 || a.block_length <= most[align_log2];
        c.how = by_words ? method::words : method::windows;
    } else if (a.progression.first_length != 0 && chunk_size <= longest_progression &&
               1 << align_log2 >= least_word<progression_locator>) {
        c.locator = locator_kind::progression;
        c.how = method::words;
    } else {
        c.how = choose_short_blocks(a, align_log2, &c) ? method::blocks : method::units;
    }
    return c;
}

}  // namespace cuda_nc::exec
