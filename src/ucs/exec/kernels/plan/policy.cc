#include "ucs/exec/kernels/plan/policy.hpp"

#include <algorithm>
#include <cstdlib>

#include "ucs/exec/kernels/move/bytes.hpp"
#include "ucs/exec/kernels/move/tiles.hpp"
#include "ucs/exec/kernels/move/threads.hpp"

namespace cuda_nc::exec {
namespace {

// A limit on multiprocessors holds only where a block of threads fills one: the hardware spreads
// smaller blocks over all of them.
constexpr uint32_t limited_threads = 1024;

unsigned trailing_zeros(uintptr_t value, unsigned limit) {
    return value == 0 ? limit : std::min(limit, static_cast<unsigned>(__builtin_ctzll(value)));
}

// log2 of the widest word that divides both addresses of every block.
unsigned common_align_log2(const part &a, unsigned layout_align_log2) {
    auto base = reinterpret_cast<uintptr_t>(a.base);
    auto packed = reinterpret_cast<uintptr_t>(a.packed);
    if (a.dir != gpu::direction::copy) {
        packed -= a.first;  // where offset 0 would lie
    }
    if (!a.list) {  // what folding has left may be better aligned than the whole layout
        layout_align_log2 = a.num_dims == 0 ? 4 : trailing_zeros(a.block_length, 4);
        for (unsigned d = 0; d < a.num_dims; ++d) {
            layout_align_log2 = std::min(
                layout_align_log2, trailing_zeros(static_cast<uintptr_t>(a.dims[d].stride), 4));
        }
    }
    return std::min(layout_align_log2, trailing_zeros(base | packed, 4));
}

// Limits of blocks moved by words of 1, 2 and 4 bytes.
using word_limits = uint32_t kernel_rules::*const[3];

bool words_pay(const kernel_rules &rules, unsigned word_log2, uint32_t block) {
    static constexpr word_limits most = {&kernel_rules::pack_words_1, &kernel_rules::pack_words_2,
                                         &kernel_rules::pack_words_4};
    return word_log2 >= 3 || block <= rules.*most[word_log2];
}

bool words_scatter(const kernel_rules &rules, const part &a, unsigned word_log2) {
    static constexpr word_limits most[] = {
        {&kernel_rules::unpack_words_1, &kernel_rules::unpack_words_2,
         &kernel_rules::unpack_words_4},
        {&kernel_rules::vector_words_1, &kernel_rules::vector_words_2,
         &kernel_rules::vector_words_4}};
    const bool vector = !a.list && a.num_dims == 1;
    return word_log2 >= 3 || a.block_length <= rules.*most[vector ? 1 : 0][word_log2];
}

locator_kind choose_locator(const part &a) {
    if (a.list) {
        return a.block_length != 0 ? locator_kind::uniform : locator_kind::varying;
    }
    return a.num_dims <= 3 ? static_cast<locator_kind>(a.num_dims) : locator_kind::any_dims;
}

uint64_t magnitude(int64_t stride) {
    return stride < 0 ? uint64_t{0} - static_cast<uint64_t>(stride) : static_cast<uint64_t>(stride);
}

// The dim that is nearly contiguous in memory where dim 0 is not; 0 where there is none.
unsigned find_across(const part &a) {
    unsigned best = 0;
    if (magnitude(a.dims[0].stride) < 64) {
        return 0;
    }
    for (unsigned d = 1; d < a.num_dims; ++d) {
        uint64_t stride = magnitude(a.dims[d].stride);
        if (stride != 0 && stride < 32 && stride < magnitude(a.dims[best].stride)) {
            best = d;
        }
    }
    return best;
}

bool choose_tiles(const part &a, unsigned align_log2, uint32_t most, kernel_choice *c) {
    uint32_t width = a.block_length;
    if (a.list || a.num_dims < 2 || a.dir == gpu::direction::copy || width > most ||
        (width & (width - 1)) != 0 || (1u << align_log2) < width) {
        return false;
    }
    unsigned across = find_across(a);
    uint32_t along_count = a.dims[0].by_count.divisor;
    if (across == 0 || along_count < 16) {
        return false;
    }
    tile_shape &s = c->tiles;
    s.pitch = width * along_count;
    for (unsigned d = 1; d < across; ++d) {
        s.middle *= a.dims[d].by_count.divisor;
    }
    s.pitch *= s.middle;
    s.stride_across = a.dims[across].stride;
    uint32_t last = a.first + a.length - 1;
    uint32_t outer_begin = 0, outer_end = 1;
    if (across + 1 < a.num_dims) {
        s.count_across = a.dims[across].by_count.divisor;
        s.plane = s.pitch * s.count_across;
        outer_begin = a.first / s.plane;
        outer_end = last / s.plane + 1;
    }
    if (outer_end - outer_begin == 1) {
        s.across_begin = (a.first - outer_begin * s.plane) / s.pitch;
        s.count_across = (last - outer_begin * s.plane) / s.pitch + 1;
    }
    if (s.count_across - s.across_begin < 8) {
        return false;
    }
    s.across_begin &= ~uint32_t{31};  // whole sectors, and pairs of elements
    s.across_first = a.dir == gpu::direction::unpack;
    s.outer_begin = outer_begin;
    c->word_log2 = static_cast<uint8_t>(__builtin_ctz(width));
    uint32_t side = width >= 8 ? tile_side<8> : tile_side<1>;
    s.tiles_along = (along_count + side - 1) / side;
    s.tiles_across = (s.count_across - s.across_begin + side - 1) / side;
    s.by_tiles_along = fast_divide32(s.tiles_along);
    s.by_tiles_across = fast_divide32(s.tiles_across);
    s.by_middle = fast_divide32(s.middle);
    s.count = s.tiles_along * s.tiles_across * s.middle * (outer_end - outer_begin);
    c->how = method::tiles;
    return true;
}

// Words that a block may have, over all ways in which blocks lie in the target, and lanes for the
// bytes that are in none.
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
    // Blocks cut by the part's ends are shorter and may begin anywhere.
    const uint32_t from = a.by_block.quotient(a.first);
    const uint32_t to = a.by_block.quotient(a.first + a.length - 1);
    if (from * a.block_length != a.first || (to - from + 1) * a.block_length != a.length) {
        words = std::max(words, length / 16);
    }
    piece_counts n;
    const uint32_t blocks = to - from + 1;
    n.by_words = fast_divide32(std::max(1u, words));
    while ((1u << n.lanes_log2) < edges) {
        ++n.lanes_log2;
    }
    n.all_words = blocks * words;
    n.all_edges = blocks << n.lanes_log2;
    return n;
}

// Bytes of a warp's share: some `blocks`, but enough words for all lanes, and all multiprocessors
// busy.
uint32_t choose_unit_log2(const part &a, unsigned num_sms, uint32_t blocks, uint32_t most) {
    const uint64_t mean = a.list_size / a.num_blocks + 1;
    uint32_t log2 = 9;
    while (log2 < most && (uint64_t{1} << log2) < mean * blocks &&
           (a.length >> (log2 + 1)) > uint64_t{num_sms} * 32) {
        ++log2;
    }
    return log2;
}

uint32_t log2_ceil(uint64_t n) {
    return n <= 1 ? 0 : 64 - static_cast<uint32_t>(__builtin_clzll(n - 1));
}

// log2 of the lanes for a block of `words` words on average. The fewer words a lane has, the more
// blocks and the fewer bytes of each are under way.
uint32_t choose_lanes_log2(uint64_t words, bool bytes) {
    const uint64_t each = bytes ? (words > 64 ? 8 : 4) : (words > 48 ? 4 : 3);
    return log2_ceil((words + each - 1) / each);
}

// What matters of a list's blocks to the lanes that move them.
struct block_words {
    unsigned word_log2;      // words lie alike on both sides, and the part is whole ones
    uint64_t mean, longest;  // words of a block

    block_words(const part &a, unsigned align_log2)
        : word_log2(std::min(align_log2, trailing_zeros(a.first | a.length, 4))),
          mean((a.list_size / a.num_blocks) >> word_log2),
          longest(a.longest_block >> word_log2) {}
};
constexpr uint32_t short_block = 16;  // words on average
constexpr uint32_t most_lanes_log2 = 5, most_turns = 4;

// Such as move_block() takes.
bool has_block_tables(const part &a) {
    return a.tables.displacement != nullptr && a.tables.packed != nullptr &&
           a.list_size <= (1u << 30);
}

// False: long, a small part of a list, or with a block so long that its lanes would take too many
// turns.
bool choose_blocks(const part &a, unsigned align_log2, const kernel_rules &rules,
                   kernel_choice *c) {
    constexpr uint64_t many_lanes = 1 << 16, most_items = uint64_t{1} << 31;
    constexpr uint64_t last_offset = (uint64_t{1} << 31) - 4096;  // lanes look a little beyond
    if (!has_block_tables(a) || uint64_t{a.first} + a.length > last_offset ||
        (a.num_dims == 0 && a.list_size / 2 > a.length)) {
        return false;  // all blocks of a list are looked at
    }
    const block_words w(a, align_log2);
    const bool bytes = w.word_log2 < 2, packing = a.dir == gpu::direction::pack;
    const uint32_t limit = packing ? bytes ? rules.pack_blocks_1 : rules.pack_blocks_4
                           : bytes ? rules.unpack_blocks_1
                                   : rules.unpack_blocks_4;
    if (limit == 0 || (a.length > limit && w.mean > short_block)) {
        return false;
    }
    const uint32_t for_mean = std::min(most_lanes_log2, choose_lanes_log2(w.mean, bytes));
    const uint64_t most_words =
        most_turns * with_word(w.word_log2, [](auto width) {
            return static_cast<uint64_t>(unroll_block_words<decltype(width)::value>);
        });
    const uint32_t for_longest = log2_ceil((w.longest + most_words - 1) / most_words);
    block_lanes &n = c->blocks;
    uint32_t passes = 1;
    if (a.num_dims != 0) {
        n.first_pass = a.by_list.quotient(a.first);
        passes = a.by_list.quotient(a.first + a.length - 1) - n.first_pass + 1;
    }
    n.lanes_log2 = std::max(for_mean, for_longest);
    const uint64_t items = (uint64_t{passes} * a.num_blocks) << n.lanes_log2;
    const bool mostly_idle = n.lanes_log2 > for_mean + 2 && items > many_lanes;
    if (n.lanes_log2 > most_lanes_log2 || mostly_idle || items > most_items) {
        return false;
    }
    n.items = static_cast<uint32_t>(items);
    c->how = method::blocks;
    c->word_log2 = static_cast<uint8_t>(w.word_log2);
    return true;
}

// The same for a pipe or a pull, of a short list that is repeated: finding its blocks takes no read
// that is not in the cache, where a unit takes longer than the link for its bytes.
bool choose_short_blocks(const part &a, unsigned align_log2, kernel_choice *c) {
    if (!has_block_tables(a) || a.num_dims == 0 || a.num_blocks > max_short_list) {
        return false;
    }
    const block_words w(a, align_log2);
    if (w.word_log2 < least_pipe_block_log2 || w.mean > short_block ||
        w.longest > 4 * short_block) {
        return false;
    }
    c->word_log2 = static_cast<uint8_t>(w.word_log2);
    return true;
}

// For blocks of half a line or less that lie apart.
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

// Items a thread takes at a time: few where the message is small, so that all multiprocessors help.
uint32_t spread(uint32_t items, uint32_t unroll, uint32_t threads, unsigned num_sms) {
    uint64_t at_once = uint64_t{threads} * std::max(1u, num_sms) * 2;
    return static_cast<uint32_t>(
        std::min<uint64_t>(unroll, std::max<uint64_t>(1, (items + at_once - 1) / at_once)));
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
    const kernel_rules &rules = *limits.rules;
    const bool packing = a.dir == gpu::direction::pack;
    kernel_choice c;
    c.threads = max_sms != 0 ? limited_threads : rules.word_threads;
    const unsigned num_sms = max_sms != 0 ? max_sms : limits.num_sms;
    const unsigned align_log2 = common_align_log2(a, layout_align_log2);
    c.locator = choose_locator(a);
    if (choose_tiles(a, align_log2, rules.tile_width, &c)) {
        // Each group of tile_threads has its own tile in shared memory; a block of threads has one
        // of them unless it is to fill a multiprocessor.
        c.items = c.tiles.count;
        c.per_block = max_sms == 0 ? 1 : with_word(c.word_log2, [](auto width) {
            return most_tiles<decltype(width)::value>;
        });
        c.threads = c.per_block * tile_threads;
    } else if (c.locator == locator_kind::varying && choose_blocks(a, align_log2, rules, &c)) {
        c.items = c.blocks.items;
        c.per_block = c.threads;
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
        c.per_block = c.threads / warp_lanes;
    } else if (packing ? words_pay(rules, align_log2, a.block_length)
                       : words_scatter(rules, a, align_log2)) {
        c.how = method::words;
        c.word_log2 = static_cast<uint8_t>(align_log2);
        c.items = count_words(a, align_log2);
        c.deep =
            max_sms != 0 || ((packing ? rules.pack_deep : rules.unpack_deep) >> align_log2 & 1);
        c.reserve = choose_reserve(a, c, limits);
        const uint32_t unroll = most_loads(c);
        c.per_block = c.threads * spread(c.items, unroll, c.threads, num_sms);
    } else {
        c.threads = max_sms != 0 ? limited_threads : rules.piece_threads;
        c.how = packing ? method::windows : method::pieces;
        if (packing) {
            c.items = count_windows(a);
        } else {
            c.pieces = count_pieces(a, layout_align_log2);
            c.items = std::max(c.pieces.all_words, c.pieces.all_edges);
        }
        // A window waits for one load after the other: the more threads the better.
        const uint32_t share = packing && max_sms == 0 ? 1 : unroll_windows;
        c.per_block = c.threads * spread(c.items, share, c.threads, num_sms);
    }
    c.grid = std::max<uint32_t>(
        1, static_cast<uint32_t>((uint64_t{c.items} + c.per_block - 1) / c.per_block));
    if (max_sms != 0) {
        c.grid = std::min(c.grid, max_sms);
    }
    return c;
}

void join_blocks(kernel_choice *c, uint32_t most) noexcept {
    const uint32_t limit = c->how == method::tiles   ? c->threads
                           : c->how == method::units ? 512
                                                     : 1024;
    const uint32_t wanted = most / 2;  // each that tells costs some time
    kernel_choice joined = *c;
    if (c->how == method::words) {
        const uint32_t most_items = joined.threads * most_loads(joined);
        while (joined.grid > wanted && joined.per_block * 2 <= most_items) {
            joined.per_block *= 2;
            joined.grid = (joined.items + joined.per_block - 1) / joined.per_block;
        }
    }
    while (joined.grid > wanted && joined.threads * 2 <= limit) {
        joined.threads *= 2;
        joined.per_block *= 2;
        joined.grid = (joined.items + joined.per_block - 1) / joined.per_block;
    }
    if (joined.grid <= most) {
        *c = joined;
    }
}

uint8_t mover_lanes_log2(const part &a, unsigned word_log2) noexcept {
    const uint64_t longest = a.longest_block >> word_log2;
    return static_cast<uint8_t>(log2_ceil((longest + lane_words - 1) / lane_words));
}

kernel_choice choose_mover(const part &a, unsigned layout_align_log2,
                           uint32_t chunk_size) noexcept {
    static constexpr uint32_t most[] = {2, 8, 48};  // as long as a link is the limit
    // Of longer chunks the reads of tables are a small part, and units have more loads in flight.
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
