#include "ucs/exec/kernels/policy.hpp"

#include <algorithm>
#include <cstdlib>

#include "ucs/exec/kernels/move_bytes.hpp"
#include "ucs/exec/kernels/move_tiles.hpp"
#include "ucs/exec/kernels/threads.hpp"

namespace cuda_nc::exec {
namespace {

constexpr uint32_t usual_threads = 256;
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

uint64_t mean_block(const part &a) {
    return a.block_length != 0 ? a.block_length : std::max<uint64_t>(1, a.list_size / a.num_blocks);
}

// Below these lengths a thread for each word beats a thread that puts 16 bytes together.
bool words_pay(unsigned word_log2, uint64_t block) {
    switch (word_log2) {
        case 0:
            return block <= 2;
        case 1:
            return block <= 8;
        case 2:
            return block <= 48;
        default:
            return true;
    }
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

bool choose_tiles(const part &a, unsigned align_log2, kernel_choice *c) {
    uint32_t width = a.block_length;
    if (a.list || a.num_dims < 2 || a.dir == gpu::direction::copy || width > 16 ||
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

// Words and edges that a block may have, over all ways in which blocks lie in the target.
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
    uint32_t words = 0, edges = 0;
    auto consider = [&](uint32_t skew, uint32_t size) {
        uint32_t head = std::min((16 - skew) & 15, size), whole = (size - head) / 16;
        uint32_t in_head = head == 0 ? 0 : (skew % 4 + head + 3) / 4;
        words = std::max(words, whole);
        edges = std::max(edges, in_head + (size - head - whole * 16 + 3) / 4);
    };
    for (uint32_t skew = low_bits(target, step - 1); skew < 16; skew += step) {
        consider(skew, length);
    }
    // Blocks cut by the part's ends are shorter and may begin anywhere.
    const uint32_t from = a.by_block.quotient(a.first);
    const uint32_t to = a.by_block.quotient(a.first + a.length - 1);
    if (from * a.block_length != a.first || (to - from + 1) * a.block_length != a.length) {
        edges = std::max(edges, std::min(length, 8u));
        words = std::max(words, length / 16);
    }
    piece_counts n;
    const uint32_t blocks = to - from + 1;
    n.by_words = fast_divide32(std::max(1u, words));
    n.by_edges = fast_divide32(std::max(1u, edges));
    n.all_words = blocks * words;
    n.all_edges = blocks * edges;
    return n;
}

// Bytes of a warp's share: some 32 blocks, but enough words for all lanes, and all multiprocessors
// busy.
uint32_t choose_unit_log2(const part &a, unsigned num_sms) {
    const uint64_t mean = a.list_size / a.num_blocks + 1;
    uint32_t log2 = 9;
    while (log2 < 12 && (uint64_t{1} << log2) < mean * table_blocks &&
           (a.length >> (log2 + 1)) > uint64_t{num_sms} * 32) {
        ++log2;
    }
    return log2;
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

// Tiles that a block may hold in the shared memory that a launch gets without asking for more.
uint32_t most_tiles(unsigned word_log2) {
    constexpr uint32_t shared_memory = 48u << 10;
    return with_word(word_log2, [](auto width) {
        return shared_memory / tile_shared_bytes<decltype(width)::value>;
    });
}

}  // namespace

kernel_choice choose_kernel(const part &a, unsigned layout_align_log2, const kernel_limits &limits,
                            unsigned max_sms) noexcept {
    kernel_choice c;
    c.threads = max_sms != 0 ? limited_threads : usual_threads;
    const unsigned num_sms = max_sms != 0 ? max_sms : limits.num_sms;
    const unsigned align_log2 = common_align_log2(a, layout_align_log2);
    c.locator = choose_locator(a);
    if (choose_tiles(a, align_log2, &c)) {
        // Each group of tile_threads has its own tile in shared memory.
        c.items = c.tiles.count;
        c.per_block = std::min(c.threads / tile_threads, most_tiles(c.word_log2));
        c.threads = c.per_block * tile_threads;
    } else if (c.locator == locator_kind::varying) {
        c.how = method::units;
        c.word_log2 = static_cast<uint8_t>(align_log2);
        c.unit_log2 = choose_unit_log2(a, num_sms);
        c.items = count_units(a, c.unit_log2);
        c.per_block = c.threads / warp_lanes;
    } else if (words_pay(align_log2, a.block_length)) {
        c.how = method::words;
        c.word_log2 = static_cast<uint8_t>(align_log2);
        c.items = count_words(a, align_log2);
        uint32_t unroll = with_word(c.word_log2, [&](auto width) {
            constexpr int w = decltype(width)::value;
            return static_cast<uint32_t>(c.locator == locator_kind::uniform
                                             ? unroll_words<uniform_locator, w>
                                             : unroll_words<strided_locator<-1>, w>);
        });
        c.per_block = c.threads * spread(c.items, unroll, c.threads, num_sms);
    } else {
        const bool packing = a.dir == gpu::direction::pack;
        c.how = packing ? method::windows : method::pieces;
        if (packing) {
            c.items = count_windows(a);
        } else {
            c.pieces = count_pieces(a, layout_align_log2);
            c.items = std::max(c.pieces.all_words, c.pieces.all_edges);
        }
        c.per_block = c.threads * spread(c.items, unroll_windows, c.threads, num_sms);
    }
    c.grid = std::max<uint32_t>(
        1, static_cast<uint32_t>((uint64_t{c.items} + c.per_block - 1) / c.per_block));
    if (max_sms != 0) {
        c.grid = std::min(c.grid, max_sms);
    }
    return c;
}

kernel_choice choose_mover(const part &a, unsigned layout_align_log2) noexcept {
    kernel_choice c;
    const unsigned align_log2 = common_align_log2(a, layout_align_log2);
    c.locator = choose_locator(a);
    c.how = words_pay(align_log2, mean_block(a)) ? method::words : method::windows;
    c.word_log2 = static_cast<uint8_t>(align_log2);
    return c;
}

}  // namespace cuda_nc::exec
