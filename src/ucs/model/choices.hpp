// Thresholds and sizes that depend on the machine's figures (its profile). Computed once, looked up
// for each message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "ucs/layout/layout_view.hpp"
#include "ucs/model/profile.hpp"

namespace cuda_nc::model {

constexpr unsigned num_aligns = 5;      // log2 of 1 to 16 bytes
constexpr unsigned num_lengths = 14;    // log2 of a block's bytes; the last: that and all longer
constexpr uint64_t never = UINT64_MAX;  // a threshold that no message reaches

struct choices {
    size_t fragment_size = 0;  // bytes that one launch packs, where no setting says
    size_t most_buffered = 0;  // bytes of the longest send that is buffered (MPI_Send); likewise
    // Where the packed bytes are in host memory: from so many on, two steps (a kernel within GPU
    // memory, and a copy) are faster than one kernel. By direction (pack, unpack), log2 of
    // alignment, log2 of the mean block.
    uint64_t staged_from[2][num_aligns][num_lengths] = {};
};

choices make_choices(const gpu_profile &of, double link);

// The machine's profile, read at the first call, with defaults for GPUs that the file does not
// know. That call looks for GPUs and sets the kernel rules of each. Never destroyed; later calls
// take no lock.
const machine_profile &machine() noexcept;
// One sentence on where the profile comes from.
std::string why_machine();

// The choices for GPU `ordinal`; never fails.
const choices &choices_of(int ordinal) noexcept;

// The setting, or what the figures of the process's GPUs suggest where it is not set.
size_t fragment_size(int ordinal) noexcept;
// Smallest direct message, bytes. `buffered`: for sends that should be done with their buffer
// before the receiver has come (MPI_Send).
size_t direct_thresh(bool buffered) noexcept;

// Whether a copy of its own, beside the kernel, should take the packed bytes across the bus.
bool prefers_staging(const choices &by, gpu::direction dir, unsigned align_log2,
                     uint64_t packed_size, uint64_t num_blocks) noexcept;

// For tests: reads the profile again. Not thread safe.
void reload_machine_for_test();

}  // namespace cuda_nc::model
