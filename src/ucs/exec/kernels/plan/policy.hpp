// Chooses the kernel for a part, and its number of threads.
#pragma once

#include "ucs/exec/kernels/move/blocks.hpp"
#include "ucs/exec/kernels/move/pieces.hpp"
#include "ucs/exec/kernels/move/tiles.hpp"
#include "ucs/exec/kernels/move/units.hpp"
#include "ucs/gpu/kernel_rules.hpp"

namespace cuda_nc::exec {

// The properties of a GPU that matter to the choice of kernels; filled once for a device.
struct kernel_limits {
    unsigned num_sms = 0;
    size_t l2_size = 0;               // bytes
    bool starts_early = false;        // kernels may start while the ones before them end
    bool host_caches_memory = false;  // CPUs keep lines of this GPU's memory in their caches
    const gpu::kernel_rules *rules = &gpu::usual_rules;
};

enum class method : uint8_t {
    words,    // both sides aligned alike
    windows,  // pack: sides not aligned alike, or words too short for a thread each
    pieces,   // unpack, copy: the same
    units,    // lists of blocks of different lengths
    blocks,   // the same, where the blocks are short
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
    progression,  // for words alone, and for pipes and pulls alone
    mixed         // for windows of pulls alone
};

struct kernel_choice {
    method how = method::words;
    locator_kind locator = locator_kind::dims0;
    uint8_t word_log2 = 0;          // words, blocks and tiles; units: what divides all addresses
    uint32_t threads = 0;           // of a thread block
    uint32_t grid = 0;              // thread blocks
    uint32_t items = 0;             // words, windows, pieces, units, lanes of blocks or tiles
    uint32_t per_thread_block = 0;  // items that a thread block moves at a time
    uint32_t unit_log2 = 0;         // bytes of a unit
    uint32_t reserve = 0;  // bytes of shared memory that a thread block reserves and does not use
    bool deep = true;      // words: see unroll_words
    piece_counts pieces;
    block_lanes blocks;
    tile_shape tiles;
};

// `align_log2` is the layout's. `max_sms` 0: as many as pay.
kernel_choice choose_kernel(const part &a, unsigned align_log2, const kernel_limits &limits,
                            unsigned max_sms) noexcept;

// For a launch whose end somebody waits for: fewer and larger thread blocks, at most `most` where
// that is possible, because each tells of its end. Else unchanged.
void join_thread_blocks(kernel_choice *choice, uint32_t most) noexcept;

// Method (words, windows, blocks or units), locator and word for a pipe or a pull, which moves a
// part in chunks of `chunk_size` bytes. It has rules of its own, as mostly the link is the limit.
kernel_choice choose_mover(const part &a, unsigned align_log2, uint32_t chunk_size) noexcept;

// log2 of the widest word that divides both addresses of every block. `align_log2` is the layout's.
unsigned common_align_log2(const part &a, unsigned align_log2) noexcept;

// Bytes of the shortest words that a locator is used for: shorter ones of a progression take longer
// to find than to move.
template <class Locator>
constexpr int least_word = 1;
template <>
inline constexpr int least_word<progression_locator> = 4;

// A part's lanes_log2 where the mover moves blocks by words of 2^word_log2 bytes.
uint8_t mover_lanes_log2(const part &a, unsigned word_log2) noexcept;

// log2 of the shortest words by which a pipe or a pull moves blocks.
constexpr unsigned least_pipe_block_log2 = 2;

// Most threads of a thread block that moves units by words.
constexpr uint32_t word_unit_threads = 640;

// Loads that a thread keeps in flight where few threads run: in a pipe, or under a limit on
// multiprocessors. Where a load waits for a table's entry, more threads with fewer loads are
// better.
template <class Locator, int W>
constexpr int unroll_deep = W == 16 ? 4 : 8;
template <int W>
constexpr int unroll_deep<uniform_locator, W> = W == 16 ? 2 : 4;
// The same on a whole GPU. Its threads have enough loads in flight together; with fewer each, the
// memory written at a time is more compact, and so faster. Words below 8 bytes are bound by
// instructions rather than memory: one search then serves several words.
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
