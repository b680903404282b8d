// Short lists of short blocks of different lengths. Some lanes take a block: its entries are the
// first that they read, without a search, and its bytes the second. A unit's warp (move_units.hpp)
// has more to find out before it moves a byte, with five times as many instructions; of long lists
// it moves more bytes at a time.
//
// After the thread or warp for each block of Shi et al. (HPDC 2014) and others.
#pragma once

#include "ucs/exec/kernels/locate.hpp"
#include "ucs/exec/kernels/words.hpp"

namespace cuda_nc::exec {

struct block_lanes {
    uint32_t items = 0;       // lanes of all blocks
    uint32_t lanes_log2 = 0;  // of a block
    uint32_t first_pass = 0;  // lists with dims: that of the first block
};

// Reads that a lane has in flight.
template <int W>
constexpr int32_t unroll_block_words = W < 4 ? 8 : 4;

// Words of W bytes, which divides all addresses, offsets and lengths. `item` is a lane of a block.
// The tables are narrow; the list, and the part, are below 2^30 bytes. What is read of tiles that
// are not on the GPU yet is not used.
template <int W>
CUDA_NC_KERNEL void move_block(const part &a, const block_lanes &n, uint32_t item) {
    constexpr int32_t unroll = unroll_block_words<W>;
    const int32_t lanes = 1 << n.lanes_log2, step = lanes * W;
    uint32_t block = item >> n.lanes_log2;
    auto ahead = -static_cast<int32_t>(a.list_first);  // of the list's bytes, as offsets
    int64_t displacement = 0;
    if (a.num_dims != 0) {
        const uint32_t passes = a.by_num_blocks.quotient(block), pass = n.first_pass + passes;
        block = a.by_num_blocks.remainder(block, passes);
        ahead = static_cast<int32_t>(pass * static_cast<uint32_t>(a.list_size));
        displacement = pass_displacement<-1>(a, pass);
    }
    const uint32_t next = block + 1, tile = block >> tile_blocks_log2;
    const bool first_of_tile = (block & (tile_blocks - 1)) == 0;
    const bool last_of_tile = (next & (tile_blocks - 1)) == 0 || next == a.num_blocks;
    const auto tile_begin = static_cast<uint32_t>(a.tables.tile_packed[tile]);
    const uint32_t list_begin = tile_begin + (first_of_tile ? 0 : a.tables.packed[block]);
    const uint32_t list_end = last_of_tile ? static_cast<uint32_t>(a.tables.tile_packed[tile + 1])
                                           : tile_begin + a.tables.packed[next];
    displacement += a.tables.tile_displacement[tile] +
                    static_cast<int64_t>(uint64_t{a.tables.displacement[block]} << a.granule_log2);

    const auto first = static_cast<int32_t>(a.first);
    const int32_t part_end = first + static_cast<int32_t>(a.length);
    if (static_cast<int32_t>(tile_begin) + ahead >= part_end) {
        return;
    }
    const int32_t begin = static_cast<int32_t>(list_begin) + ahead;
    const int32_t end = static_cast<int32_t>(list_end) + ahead;
    const int32_t stop = end < part_end ? end : part_end;
    int32_t p = begin < first ? first : begin;
    p += (static_cast<int32_t>(item) & (lanes - 1)) * W;

    // The addresses of offset 0, as numbers: they may lie outside of everything.
    const bool copy = a.dir == gpu::direction::copy;
    const uint64_t moved = static_cast<uint64_t>(displacement - begin);
    const uint64_t laid_out = reinterpret_cast<uintptr_t>(a.base) + moved;
    const uint64_t other =
        reinterpret_cast<uintptr_t>(a.packed) + (copy ? moved : uint64_t{0} - a.first);
    const bool unpack = a.dir == gpu::direction::unpack;
    const uint64_t source = unpack ? other : laid_out, target = unpack ? laid_out : other;
    CUDA_NC_NO_UNROLL
    for (; p < stop; p += unroll * step) {
        word<W> value[unroll];
        CUDA_NC_UNROLL
        for (int32_t u = 0; u < unroll; ++u) {
            const int32_t at = p + u * step;
            if (at < stop) {
                value[u] = load_word<W>(
                    reinterpret_cast<const char *>(source + static_cast<uint32_t>(at)));
            }
        }
        CUDA_NC_UNROLL
        for (int32_t u = 0; u < unroll; ++u) {
            const int32_t at = p + u * step;
            if (at < stop) {
                store_word<W>(reinterpret_cast<char *>(target + static_cast<uint32_t>(at)),
                              value[u]);
            }
        }
    }
}

}  // namespace cuda_nc::exec
