// How many threads move a pair list.
#pragma once

#include <cstdint>

namespace cuda_nc::exec {

struct pair_plan {
    uint32_t grid = 0;        // thread blocks
    uint32_t threads = 0;     // of a thread block; whole warps
    uint32_t run = 0;         // pairs that a warp takes at a time, 1 to 32
    uint32_t parts_log2 = 0;  // 2^parts_log2 warps share a pair
    bool tells = false;       // each thread block writes a word when it ends
};

// Lists of more pairs than this tell of their end by an event only.
constexpr uint64_t most_told_pairs = 256;

// For a device of `num_sms` multiprocessors, of which `max_sms` at most take part; 0: all. `tells`:
// somebody waits for words in memory. `count` is not 0.
pair_plan plan_pairs(uint64_t count, unsigned num_sms, unsigned max_sms, bool tells) noexcept;

}  // namespace cuda_nc::exec
