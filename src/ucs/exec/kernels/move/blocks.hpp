// Short lists of short blocks of different lengths. A few lanes of a warp share a block: they read
// its table entries first, without a search, and then its bytes. The warp of a unit (units.hpp)
// needs five times as many instructions before it moves a byte; for long lists it is better, as it
// moves more bytes at a time.
//
// Shi et al. (HPDC 2014) and others assign a thread or a warp to each block.
#pragma once

#include "ucs/exec/kernels/move/locate.hpp"
#include "ucs/exec/kernels/move/word.hpp"

namespace cuda_nc::exec {

struct block_lanes {
    uint32_t items = 0;       // lanes of all blocks together
    uint32_t lanes_log2 = 0;  // lanes of a block
    uint32_t first_pass = 0;  // lists with dims: the repetition that holds the first block
};

// Loads that a lane has in flight.
template <int W>
constexpr int32_t unroll_block_words = W < 4 ? 8 : 4;

// The words of a block that one lane moves: at offsets p, p + step, ... below `stop`.
struct block_share {
    // Addresses of offset 0; numbers, as they may lie outside of every object.
    uint64_t source = 0, target = 0;
    int32_t p = 0, stop = 0, step = 0;
};

// Finds the share of `item`, one lane of one block. W divides all addresses, offsets and lengths.
// The tables are narrow, and the list is below 2^30 bytes. Entries of frames that are not on the
// GPU yet are read but not used. False: this block and all later ones lie behind the part.
template <int W>
CUDA_NC_KERNEL bool find_share(const part &a, const block_lanes &n, uint32_t item,
                               block_share *share_p) {
    const int32_t lanes = 1 << n.lanes_log2;
    uint32_t block = item >> n.lanes_log2;
    auto ahead = -static_cast<int64_t>(a.list_first);  // offset of the list's first byte
    int64_t displacement = 0;
    if (a.num_dims != 0) {
        const uint32_t passes = a.by_num_blocks.quotient(block), pass = n.first_pass + passes;
        block = a.by_num_blocks.remainder(block, passes);
        ahead = static_cast<int64_t>(pass * a.list_size);
        displacement = pass_displacement<-1>(a, pass);
    }
    const uint32_t next = block + 1, frame = block >> frame_blocks_log2;
    const bool first_of_frame = (block & (frame_blocks - 1)) == 0;
    const bool last_of_frame = (next & (frame_blocks - 1)) == 0 || next == a.num_blocks;
    const auto frame_begin = static_cast<uint32_t>(a.tables.frame_packed[frame]);
    const uint32_t list_begin = frame_begin + (first_of_frame ? 0 : a.tables.packed[block]);
    const uint32_t list_end = last_of_frame
                                  ? static_cast<uint32_t>(a.tables.frame_packed[frame + 1])
                                  : frame_begin + a.tables.packed[next];
    displacement += a.tables.frame_displacement[frame] +
                    static_cast<int64_t>(uint64_t{a.tables.displacement[block]} << a.granule_log2);

    const auto first = static_cast<int32_t>(a.first);
    const int32_t part_end = first + static_cast<int32_t>(a.length);
    const int64_t begin = list_begin + ahead, end = list_end + ahead;
    if (frame_begin + ahead >= part_end || begin >= part_end) {
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

constexpr int32_t lane_words = 2;  // most words of a block for one lane, in a pipe or a pull

// One thread block moves the whole part, of a list with dims. A lane has at most lane_words words
// of a block, and several blocks in flight, because the link's latency is long.
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
