// Lists of blocks of different lengths. A warp moves a unit, a range of packed bytes: it finds the
// first block once and puts the next blocks into a table in shared memory; then its lanes share the
// unit's words evenly, whatever the blocks' lengths, and find their blocks in the table. Words are
// W bytes where both sides are aligned alike, else aligned 16-byte words of the target that are put
// together.
//
// Wu et al. (HPDC 2016) assign a warp to a unit; here lanes share words instead of blocks.
#pragma once

#include "ucs/exec/kernels/move/pack_units.hpp"
#include "ucs/exec/kernels/move/scatter_unit_words.hpp"
#include "ucs/exec/kernels/move/scatter_units.hpp"

namespace cuda_nc::exec {

CUDA_NC_KERNEL uint32_t count_units(const part &a, uint32_t unit_log2) {
    uint32_t bytes = a.dir == gpu::direction::pack ? count_windows(a) * 16 : a.length;
    return (bytes - 1) / (1u << unit_log2) + 1;
}

// Moves unit `unit`, of 2^unit_log2 bytes, by one warp; `t` is its table.
template <bool Packing, int Align>
CUDA_NC_KERNEL void move_unit(const part &a, uint32_t unit, uint32_t unit_log2, unit_table *t,
                              lanes_in_step lanes) {
    unit_cursor s;
    if (Packing) {
        const uint32_t skew = low_bits(a.packed, 15);
        s.at = unit << (unit_log2 - 4);
        s.end = min_u32((unit + 1) << (unit_log2 - 4), count_windows(a));
        varying_locator::find_block_near(a, window_begin(a, s.at, skew), table_slack, &s.block,
                                         &s.pass);
        pack_unit<Align>(a, s, t, lanes);
    } else {
        s.at = a.first + (unit << unit_log2);
        s.end = a.first + min_u32((unit + 1) << unit_log2, a.length);
        varying_locator::find_block_near(a, s.at, table_slack, &s.block, &s.pass);
        scatter_unit(a, s, t, lanes);
    }
}

}  // namespace cuda_nc::exec
