// What one kernel moves: a transfer, or a part of one, described by 32-bit offsets.
#pragma once

#include <cstdint>

#include "ucs/exec/kernels/move/divide32.hpp"
#include "ucs/gpu/device.hpp"

namespace cuda_nc::exec {

struct part_dim {
    int64_t stride;  // bytes
    fast_divide32 by_count;
    uint32_t unused = 0;
};

// An offset p of a part counts packed bytes from the start of a smaller layout with buffer address
// `base`. Dims in which the part stays at one index, and indices of the outermost dim before its
// first, are added to the base. All offsets stay below 2^31.
struct part {
    char *base = nullptr;    // displacement 0 of the laid-out side
    char *packed = nullptr;  // where offset `first` lies; copy: displacement 0 of the destination
    uint32_t first = 0;      // the part moves offsets [first, first + length)
    uint32_t length = 0;     // bytes, at most 2^30
    uint32_t block_length = 0;  // bytes, uniform; 0 where lengths vary
    uint32_t num_dims = 0;
    fast_divide32 by_block;
    fast_divide32 by_list;        // lists with dims
    fast_divide32 by_num_blocks;  // lists with dims
    gpu::direction dir = gpu::direction::pack;
    bool list = false;  // blocks come from tables
    uint8_t granule_log2 = 0;
    uint8_t lanes_log2 = 0;  // lanes for a block, where a pipe or a pull moves by blocks
    uint32_t num_blocks = 1;
    uint32_t block_first = 0;    // uniform list without dims: the block that holds offset 0
    uint64_t list_first = 0;     // varying list without dims: packed byte of the list at offset 0
    uint64_t list_size = 0;      // bytes
    uint64_t longest_block = 0;  // bytes, of a list
    block_tables tables;
    block_progression progression;   // varying list without dims, or none
    int64_t first_displacement = 0;  // of the progression's first block
    part_dim dims[max_dims];
};

// Fills *part_p with the first part of work's packed bytes [done, length), usually all of them, and
// returns its length in bytes. Reads no tables and needs no GPU.
uint32_t cut_part(const gpu::transfer &work, uint64_t done, part *part_p) noexcept;

}  // namespace cuda_nc::exec
