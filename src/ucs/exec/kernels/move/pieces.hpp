// Unpacks and copies blocks of one length whose source and target are not aligned alike.
#pragma once

#include "ucs/exec/kernels/move/bytes.hpp"

namespace cuda_nc::exec {

// A block consists of the target's whole aligned 16-byte words and of its edges, the bytes before
// and behind them. An edge has a lane for each byte, so that the lanes of a warp write a sector's
// share at once; pieces of several widths would write the sector several times, at a cost in the
// cache each time. Every block has as many items as the largest needs; some stay empty.
struct piece_counts {
    fast_divide32 by_words;   // of a block
    uint32_t lanes_log2 = 0;  // lanes for the edges of a block
    uint32_t all_words = 0, all_edges = 0;
};

CUDA_NC_KERNEL uint32_t count_blocks(const part &a) {
    return a.by_block.quotient(a.first + a.length - 1) - a.by_block.quotient(a.first) + 1;
}

struct block_place {
    uint32_t begin, end;  // offsets
    const char *source;   // of offset `begin`
    char *target;
    uint32_t head;   // bytes before the first aligned word
    uint32_t words;  // whole ones
};
// Computed as a number: the base may be null or lie outside of every object.
CUDA_NC_KERNEL char *displaced(char *base, int64_t displacement) {
    return reinterpret_cast<char *>(reinterpret_cast<uintptr_t>(base) +
                                    static_cast<uint64_t>(displacement));
}

template <class Locator>
CUDA_NC_KERNEL block_place locate_block(const part &a, uint32_t block) {
    block_place b;
    uint32_t first_block = a.by_block.quotient(a.first);
    uint32_t block_begin = (first_block + block) * a.block_length;
    b.begin = block_begin > a.first ? block_begin : a.first;
    b.end = min_u32(block_begin + a.block_length, a.first + a.length);
    cursor c;
    Locator::seek(a, b.begin, &c);
    const bool copy = a.dir == gpu::direction::copy;
    b.source = copy ? displaced(a.base, c.displacement) : a.packed + (b.begin - a.first);
    b.target = displaced(copy ? a.packed : a.base, c.displacement);
    b.head = min_u32((16 - low_bits(b.target, 15)) & 15, b.end - b.begin);
    b.words = (b.end - b.begin - b.head) / 16;
    return b;
}

template <class Locator, int Unroll>
CUDA_NC_KERNEL void scatter_words(const part &a, const piece_counts &n, uint32_t i, uint32_t step,
                                  uint32_t limit) {
    quad_load<1> loaded[Unroll];
    char *target[Unroll];
    CUDA_NC_UNROLL
    for (int u = 0; u < Unroll; ++u) {
        uint32_t item = i + static_cast<uint32_t>(u) * step;
        target[u] = nullptr;
        if (item < limit) {
            uint32_t block = n.by_words.quotient(item);
            uint32_t k = n.by_words.remainder(item, block);
            block_place b = locate_block<Locator>(a, block);
            if (k < b.words) {
                target[u] = b.target + b.head + k * 16;
                loaded[u].load(b.source + b.head + k * 16, 0, 16);
            }
        }
    }
    CUDA_NC_UNROLL
    for (int u = 0; u < Unroll; ++u) {
        if (target[u] != nullptr) {
            store_word<16>(target[u], loaded[u].join());
        }
    }
}

// Where byte `lane` of a block's edges lies; behind the block's end where there are fewer.
CUDA_NC_KERNEL uint32_t edge_offset(const block_place &b, uint32_t lane) {
    return lane < b.head ? lane : lane + b.words * 16;
}

template <class Locator, int Unroll>
CUDA_NC_KERNEL void scatter_edges(const part &a, const piece_counts &n, uint32_t i, uint32_t step,
                                  uint32_t limit) {
    const uint32_t lanes = 1u << n.lanes_log2;
    char *target[Unroll];
    word<1> value[Unroll];
    CUDA_NC_UNROLL
    for (int u = 0; u < Unroll; ++u) {
        uint32_t item = i + static_cast<uint32_t>(u) * step;
        target[u] = nullptr;
        if (item < limit) {
            block_place b = locate_block<Locator>(a, item >> n.lanes_log2);
            uint32_t lane = item & (lanes - 1), offset = edge_offset(b, lane);
            if (offset < b.end - b.begin) {
                target[u] = b.target + offset;
                value[u] = load_word<1>(b.source + offset);
            }
            // A block that the part's end cuts may have more edges than lanes.
            for (lane += lanes; edge_offset(b, lane) < b.end - b.begin; lane += lanes) {
                offset = edge_offset(b, lane);
                store_word<1>(b.target + offset, load_word<1>(b.source + offset));
            }
        }
    }
    CUDA_NC_UNROLL
    for (int u = 0; u < Unroll; ++u) {
        if (target[u] != nullptr) {
            store_word<1>(target[u], value[u]);
        }
    }
}

}  // namespace cuda_nc::exec
