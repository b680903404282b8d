// Which kernel serves a part, and on how many threads.
#pragma once

#include "ucs/exec/kernels/move/blocks.hpp"
#include "ucs/exec/kernels/move/pieces.hpp"
#include "ucs/exec/kernels/move/tiles.hpp"
#include "ucs/exec/kernels/move/units.hpp"
#include "ucs/gpu/kernel_rules.hpp"

namespace cuda_nc::exec {

// What a GPU can do, as far as kernels care; filled once per device.
struct kernel_limits {
    unsigned num_sms = 0;
    size_t l2_size = 0;         // bytes
    bool starts_early = false;  // kernels may start while the ones before them end
    const kernel_rules *rules = &usual_rules;
};

enum class method : uint8_t {
    words,    // both sides aligned alike
    windows,  // pack, sides not aligned to each other, or blocks not worth a thread for each word
    pieces,   // the same, unpack and copy
    units,    // lists of blocks of different lengths
    blocks,   // the same where they are short
    tiles     // transposes
};

enum class locator_kind : uint8_t {
    dims0,
    dims1,
    dims2,
    dims3,
    any_dims,
    uniform,
    varying,
    progression  // by words alone, and where a link is the limit
};
constexpr unsigned num_locators = 8;

struct kernel_choice {
    method how = method::words;
    locator_kind locator = locator_kind::dims0;
    uint8_t word_log2 = 0;   // words, blocks and tiles; units: what divides all addresses
    uint32_t threads = 0;    // of a block of threads
    uint32_t grid = 0;       // blocks of threads
    uint32_t items = 0;      // words, windows, pieces, units, lanes of blocks or tiles
    uint32_t per_block = 0;  // items that a block of threads takes at a time
    uint32_t unit_log2 = 0;  // bytes of a unit
    uint32_t reserve = 0;    // bytes of shared memory that a block of threads takes but does not
                             // use, so that fewer of them run at a time
    bool deep = true;        // words: see unroll_words
    piece_counts pieces;
    block_lanes blocks;
    tile_shape tiles;
};

// `align_log2` is the layout's. `max_sms` 0: as many as pay.
kernel_choice choose_kernel(const part &a, unsigned align_log2, const kernel_limits &limits,
                            unsigned max_sms) noexcept;

// Where somebody waits for the end of this launch: fewer blocks of more threads, so that, if that
// is to be had, at most `most` of them have to tell of it.
void join_blocks(kernel_choice *choice, uint32_t most) noexcept;

// Method, locator and word alone, for a kernel that takes a part in pieces of `chunk_size` bytes:
// words, windows, blocks or units. By rules of its own: there a link is the limit, mostly.
kernel_choice choose_mover(const part &a, unsigned align_log2, uint32_t chunk_size) noexcept;

// Bytes of the shortest words that are found by a locator: those of a progression would each take
// longer to find than to move.
template <class Locator>
constexpr int least_word = 1;
template <>
inline constexpr int least_word<progression_locator> = 4;

// A part's lanes_log2 where the mover goes by blocks, with words of 2^word_log2 bytes.
uint8_t mover_lanes_log2(const part &a, unsigned word_log2) noexcept;

// log2 of the shortest words by which a pipe or a pull moves blocks.
constexpr unsigned least_pipe_block_log2 = 2;

// Most threads of a block that moves units by words.
constexpr uint32_t word_unit_threads = 640;

// Loads that a thread keeps in flight where few threads run: in a pipe, or under a limit on
// multiprocessors. Where each waits for a table's entry, more threads with fewer loads are better.
template <class Locator, int W>
constexpr int unroll_deep = W == 16 ? 4 : 8;
template <int W>
constexpr int unroll_deep<uniform_locator, W> = W == 16 ? 2 : 4;
// The same on a whole GPU. Its threads have enough in flight together, and the less each adds, the
// smaller the stretch of memory that is written at a time, which the memory rewards. Words below 8
// bytes wait for instructions rather than memory: what a thread finds out once serves several.
template <class Locator, int W>
constexpr int unroll_full = W == 16  ? 1
                            : W == 8 ? 2
                                     : 8;
template <int W>
constexpr int unroll_full<strided_locator<1>, W> = W == 16  ? 1
                                                   : W == 8 ? 2
                                                   : W == 4 ? 8
                                                            : 16;
template <int W>
constexpr int unroll_full<uniform_locator, W> = W == 8 || W == 16 ? 2 : 4;
template <class Locator, int W, bool Deep>
constexpr int unroll_words = Deep ? unroll_deep<Locator, W> : unroll_full<Locator, W>;
constexpr int unroll_windows = 2;

}  // namespace cuda_nc::exec
