// The constants by which kernels are chosen. Their best values differ from GPU to GPU; the usual
// ones are what nc_perftest tune found on an H200, and on an H100. Any values in their ranges move
// the right bytes.
#pragma once

#include <cstdint>

namespace cuda_nc::gpu {

struct kernel_rules {
    // Pack: the longest blocks, in bytes, that move by words of 1, 2 and 4 bytes; longer ones are
    // put together 16 bytes at a time. Blocks of words of 8 bytes or more always move by words.
    uint32_t pack_words_1 = 4, pack_words_2 = 16, pack_words_4 = 192;
    // The same for unpack, where the other method (pieces) writes a sector that a block shares with
    // a gap more than once. Vectors have limits of their own, as their words cost the least.
    uint32_t unpack_words_1 = 64, unpack_words_2 = 128, unpack_words_4 = 256;
    uint32_t vector_words_1 = 128, vector_words_2 = 512, vector_words_4 = 2048;

    // Threads of a thread block, where multiprocessors are not limited.
    uint32_t word_threads = 256;
    uint32_t piece_threads = 256;  // windows too
    uint32_t unit_threads = 128;   // small thread blocks: units wait more than others

    // Units: log2 of the most bytes of one, and how many blocks one should hold.
    uint32_t unit_log2 = 12;
    uint32_t word_unit_log2 = 11;  // the same where words are unpacked
    uint32_t unit_blocks = 62;
    // Most bytes of a list that moves by blocks rather than by units, for words of 1 and 2 bytes,
    // and of 4 and more. 0: no list does; else lists of short blocks always do.
    uint32_t pack_blocks_1 = 4 << 20, pack_blocks_4 = 16 << 20;
    uint32_t unpack_blocks_1 = 12 << 20, unpack_blocks_4 = 1 << 30;

    // Bytes of shared memory that a thread block reserves and does not use, so that fewer run at a
    // time, where half cache lines that lie apart are written: memory writes those back at half its
    // rate, and faster with fewer in flight. 6 thread blocks on a multiprocessor did best on an
    // H200 (8: 1.27 times the time of a plain copy, 6: 1.18, 4: 1.24).
    uint32_t half_line_reserve = 36000;

    uint32_t tile_width = 16;  // most bytes of a transpose's element that goes through tiles

    // Bit n: words of 2^n bytes keep as many loads in flight on a whole GPU as where few threads
    // run (see unroll_words).
    uint32_t pack_deep = 0, unpack_deep = 0;
};
inline constexpr kernel_rules usual_rules;

// All rules by name, with the values that each may have.
using kernel_rule_value = uint32_t kernel_rules::*;
struct kernel_rule {
    const char *name;
    kernel_rule_value value;
    uint32_t least, most, step;
    bool power = false;  // must be a power of two

    constexpr bool allows(uint64_t given) const {
        return given >= least && given <= most && given % step == 0 &&
               (!power || (given & (given - 1)) == 0);
    }
};
inline constexpr kernel_rule all_kernel_rules[] = {
    {"pack_words_1", &kernel_rules::pack_words_1, 0, 65536, 1},
    {"pack_words_2", &kernel_rules::pack_words_2, 0, 65536, 1},
    {"pack_words_4", &kernel_rules::pack_words_4, 0, 65536, 1},
    {"unpack_words_1", &kernel_rules::unpack_words_1, 0, 65536, 1},
    {"unpack_words_2", &kernel_rules::unpack_words_2, 0, 65536, 1},
    {"unpack_words_4", &kernel_rules::unpack_words_4, 0, 65536, 1},
    {"vector_words_1", &kernel_rules::vector_words_1, 0, 65536, 1},
    {"vector_words_2", &kernel_rules::vector_words_2, 0, 65536, 1},
    {"vector_words_4", &kernel_rules::vector_words_4, 0, 65536, 1},
    {"word_threads", &kernel_rules::word_threads, 32, 1024, 32, true},
    {"piece_threads", &kernel_rules::piece_threads, 32, 1024, 32},
    {"unit_threads", &kernel_rules::unit_threads, 32, 640, 32},
    {"unit_log2", &kernel_rules::unit_log2, 9, 16, 1},
    {"word_unit_log2", &kernel_rules::word_unit_log2, 9, 16, 1},
    {"unit_blocks", &kernel_rules::unit_blocks, 1, 1024, 1},
    {"pack_blocks_1", &kernel_rules::pack_blocks_1, 0, 1 << 30, 1},
    {"pack_blocks_4", &kernel_rules::pack_blocks_4, 0, 1 << 30, 1},
    {"unpack_blocks_1", &kernel_rules::unpack_blocks_1, 0, 1 << 30, 1},
    {"unpack_blocks_4", &kernel_rules::unpack_blocks_4, 0, 1 << 30, 1},
    {"half_line_reserve", &kernel_rules::half_line_reserve, 0, 48 << 10, 16},
    {"tile_width", &kernel_rules::tile_width, 0, 16, 1},
    {"pack_deep", &kernel_rules::pack_deep, 0, 31, 1},
    {"unpack_deep", &kernel_rules::unpack_deep, 0, 31, 1},
};

inline bool operator==(const kernel_rules &a, const kernel_rules &b) noexcept {
    for (const kernel_rule &one : all_kernel_rules) {
        if (a.*one.value != b.*one.value) {
            return false;
        }
    }
    return true;
}
inline bool operator!=(const kernel_rules &a, const kernel_rules &b) noexcept {
    return !(a == b);
}

}  // namespace cuda_nc::gpu
