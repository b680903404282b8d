// The memory that a transfer touches. A GPU reads and writes whole sectors of 32 bytes, a host
// whole lines of 64: of blocks far apart much passes that nobody wants.
#pragma once

#include <cstdint>
#include <optional>

#include "ucs/gpu/device.hpp"
#include "ucs/layout/layout.hpp"

namespace cuda_nc::tools {

constexpr uint64_t gpu_sector = 32, host_sector = 64;  // bytes

struct sector_count {
    uint64_t touched = 0;
    uint64_t in_part = 0;  // those of them that have bytes of no block
};

// Of a layout whose lower bound lies `skew` bytes behind the start of a sector; each sector counts
// once, whatever the order of the blocks. Nothing for layouts of more than 2^26 blocks; memory is
// needed (16 bytes a block) where they do not ascend. Throws std::bad_alloc.
std::optional<sector_count> count_sectors(const layout &what, uint64_t skew, uint64_t sector_size);

// Bytes of the sectors that are read, that are written, and, once more, that are written in part:
// these are read before. The packed side begins with a sector; the laid-out side, both in a copy,
// as in count_sectors().
std::optional<uint64_t> touched_bytes(const layout &what, gpu::direction dir, uint64_t skew,
                                      uint64_t sector_size);

}  // namespace cuda_nc::tools
