// Lists on both sides: blocks that each go from a place of their own to a place of their own.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuda_nc::gpu {

struct end_words;
struct layout_pairs;

// `length` bytes from `from` to `to`, of any alignment. Both in memory that the device reaches.
struct block_pair {
    const char *from;
    char *to;
    uint64_t length;  // 0 does nothing

    // A pair is moved by one warp. Longer blocks are better cut into several pairs.
    static constexpr uint64_t best_length = 16 << 10;
};
static_assert(sizeof(block_pair) == 24, "a kernel reads them");

// One launch. The pairs run in any order and side by side, so no target may overlap another target,
// or a source.
struct pair_list {
    const block_pair *pairs = nullptr;   // in pinned memory, or in the device's
    size_t count = 0;                    // 0 does nothing
    unsigned max_sms = 0;                // multiprocessors to use at most; 0: as many as pay
    end_words *ends = nullptr;           // null: only events tell of the end
    const layout_pairs *made = nullptr;  // in place of `pairs`; copied by the launch
};

}  // namespace cuda_nc::gpu
