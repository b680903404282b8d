// Short lists of short blocks of different lengths. Some lanes take a block: its entries are the
// first that they read, without a search, and its bytes the second. A unit's warp (move_units.hpp)
// has more to find out before it moves a byte, with five times as many instructions; of long lists
// it moves more bytes at a time.
//
// After the thread or warp for each block of Shi et al. (HPDC 2014) and others.
#pragma once

#include "ucs/exec/kernels/move/locate.hpp"
#include "ucs/exec/kernels/move/word.hpp"

namespace cuda_nc::exec {

struct block_lanes {
    uint32_t items = 0;       // lanes of all blocks
    uint32_t lanes_log2 = 0;  // of a block
    uint32_t first_pass = 0;  // lists with dims: that of the first block
};

// Reads that a lane has in flight.
template <int W>
constexpr int32_t unroll_block_words = W < 4 ? 8 : 4;

// What a lane moves of a block: words at offsets p, p + step, ... below `stop`.
struct block_share {
    uint64_t source = 0, target = 0;  // of offset 0, as numbers: they may lie outside of everything
    int32_t p = 0, stop = 0, step = 0;
};

// Of words of W bytes, which divides all addresses, offsets and lengths. `item` is a lane of a
// block. The tables are narrow, and the list is below 2^30 bytes. What is read of tiles that are
// not on the GPU yet is not used. False: the block, and all behind it, are behind the part.
template <int W>
CUDA_NC_KERNEL bool find_share(const part &a, const block_lanes &n, uint32_t item,
                               block_share *share_p) {
    const int32_t lanes = 1 << n.lanes_log2;
    uint32_t block = item >> n.lanes_log2;
    auto ahead = -static_cast<int64_t>(a.list_first);  // of the list's bytes, as offsets
    int64_t displacement = 0;
    if (a.num_dims != 0) {
        const uint32_t passes = a.by_num_blocks.quotient(block), pass = n.first_pass + passes;
        block = a.by_num_blocks.remainder(block, passes);
        ahead = static_cast<int64_t>(pass * a.list_size);
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
    const int64_t begin = list_begin + ahead, end = list_end + ahead;
    if (tile_begin + ahead >= part_end || begin >= part_end) {
        return false;
    }
    share_p->step = lanes * W;
    share_p->stop = end < part_end ? static_cast<int32_t>(end) : part_end;
    share_p->p = (begin < first ? first : static_cast<int32_t>(begin)) +
                 (static_cast<int32_t>(item) & (lanes - 1)) * W;
    const bool copy = a.dir == gpu::direction::copy;
    const uint64_t moved = static_cast<uint64_t>(displacement - begin);
    const uint64_t laid_out = reinterpret_cast<uintptr_t>(a.base) + moved;
    const uint64_t other =
        reinterpret_cast<uintptr_t>(a.packed) + (copy ? moved : uint64_t{0} - a.first);
    const bool unpack = a.dir == gpu::direction::unpack;
    share_p->source = unpack ? other : laid_out;
    share_p->target = unpack ? laid_out : other;
    return true;
}

template <int W, int Words>
CUDA_NC_KERNEL void load_share(const block_share &s, word<W> *values) {
    CUDA_NC_UNROLL
    for (int32_t u = 0; u < Words; ++u) {
        const int32_t at = s.p + u * s.step;
        if (at < s.stop) {
            values[u] =
                load_word<W>(reinterpret_cast<const char *>(s.source + static_cast<uint32_t>(at)));
        }
    }
}
template <int W, int Words>
CUDA_NC_KERNEL void store_share(const block_share &s, const word<W> *values) {
    CUDA_NC_UNROLL
    for (int32_t u = 0; u < Words; ++u) {
        const int32_t at = s.p + u * s.step;
        if (at < s.stop) {
            store_word<W>(reinterpret_cast<char *>(s.target + static_cast<uint32_t>(at)),
                          values[u]);
        }
    }
}

template <int W>
CUDA_NC_KERNEL void move_block(const part &a, const block_lanes &n, uint32_t item) {
    constexpr int32_t words = unroll_block_words<W>;
    block_share share;
    if (!find_share<W>(a, n, item, &share)) {
        return;
    }
    CUDA_NC_NO_UNROLL
    for (; share.p < share.stop; share.p += words * share.step) {
        word<W> values[words];
        load_share<W, words>(share, values);
        store_share<W, words>(share, values);
    }
}

constexpr int32_t lane_words = 2;  // of a block, at most, where a pipe or a pull goes by blocks

// By one block of threads that moves the part, of a list with dims, alone; a lane has lane_words of
// a block at most. Several blocks of each are on their way, as the link's latency is long.
template <int W>
CUDA_NC_KERNEL void move_blocks(const part &a, uint32_t thread, uint32_t threads) {
    constexpr uint32_t at_once = W == 16 ? 2 : 4;
    block_lanes n;
    n.lanes_log2 = a.lanes_log2;
    n.first_pass = a.by_list.quotient(a.first);
    bool more = true;
    CUDA_NC_NO_UNROLL
    for (uint32_t item = thread; more; item += at_once * threads) {
        block_share shares[at_once];
        word<W> values[at_once][lane_words];
        CUDA_NC_UNROLL
        for (uint32_t u = 0; u < at_once; ++u) {
            more = find_share<W>(a, n, item + u * threads, &shares[u]);
            if (!more) {
                shares[u] = block_share{};
            } else {
                load_share<W, lane_words>(shares[u], values[u]);
            }
        }
        CUDA_NC_UNROLL
        for (uint32_t u = 0; u < at_once; ++u) {
            store_share<W, lane_words>(shares[u], values[u]);
        }
    }
}

}  // namespace cuda_nc::exec
