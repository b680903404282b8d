// What the engine chooses by the figures of its machine. Looked up for each message: made once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "ucs/layout/layout_view.hpp"
#include "ucs/model/profile.hpp"

namespace cuda_nc::model {

constexpr unsigned num_aligns = 5;      // log2 of 1 to 16 bytes
constexpr unsigned num_lengths = 14;    // log2 of a block's bytes; the last: that and all longer
constexpr uint64_t never = UINT64_MAX;  // as a number of bytes

struct choices {
    size_t fragment_size = 0;  // bytes that one launch packs ahead, where no setting says
    size_t direct_thresh = 0;  // bytes from which on a message goes from GPU to GPU, likewise
    // Packed bytes, in host memory, from which on two steps (kernel within GPU memory, and copy)
    // beat one: by direction (pack, unpack), log2 of alignment, log2 of the mean block.
    uint64_t staged_from[2][num_aligns][num_lengths] = {};
};

choices make_choices(const gpu_profile &of, double link);

// The profile in force: read at the first call, with defaults for GPUs that it does not know.
// Looks for GPUs, and gives each its rules for choosing kernels. Lives for ever; free of locks once
// made.
const machine_profile &machine() noexcept;
// One sentence on where it comes from.
std::string why_machine();

// Of GPU `ordinal`; never fails.
const choices &choices_of(int ordinal) noexcept;

// The setting where it was made, else by the figures of the process's GPUs.
size_t fragment_size(int ordinal) noexcept;
// `buffered`: of sends that should be done with their buffer before the receiver has come.
size_t direct_thresh(bool buffered) noexcept;

// Whether bytes of the layout should cross the bus by a copy of their own.
bool prefers_staging(const choices &by, gpu::direction dir, unsigned align_log2,
                     uint64_t packed_size, uint64_t num_blocks) noexcept;

// For tests: reads the profile again. Not thread safe.
void reload_machine_for_test();

}  // namespace cuda_nc::model
