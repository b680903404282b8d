// Unpacks and copies blocks of one length whose two sides are not aligned to each other.
#pragma once

#include "ucs/exec/kernels/move_bytes.hpp"

namespace cuda_nc::exec {

// Unpack, copy of blocks of one length. Of each block, the target's whole aligned words of 16 bytes
// and, before and behind them, its edges in aligned words of 4, whole or not. The lanes of a warp
// write neighbouring edges in one go: pieces of 1, 2, 4 and 8 bytes after each other would write
// one sector of the GPU's cache again and again. Each block has as many items as any may need; some
// are empty.
struct piece_counts {
    fast_divide32 by_words, by_edges;  // of a block
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
    b.source = copy ? a.base + c.displacement : a.packed + (b.begin - a.first);
    b.target = (copy ? a.packed : a.base) + c.displacement;
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

// An aligned word of 4 bytes at `target`, of which [low, high) are a block's.
struct edge {
    char *target;
    const char *source;  // of byte 0 of the word
    uint32_t low, high;  // alike: empty
};
CUDA_NC_KERNEL edge locate_edge(const block_place &b, uint32_t k) {
    const uint32_t skew = low_bits(b.target, 3);
    const uint32_t in_head = b.head == 0 ? 0 : (skew + b.head + 3) / 4;
    uint32_t offset, low = 0, end;  // relative to the block's first byte less skew
    if (k < in_head) {
        offset = 4 * k;
        low = k == 0 ? skew : 0;
        end = skew + b.head;
    } else {
        offset = skew + b.head + b.words * 16 + 4 * (k - in_head);
        end = skew + (b.end - b.begin);
    }
    edge e;
    e.target = b.target - skew + offset;
    e.source = b.source - skew + offset;
    e.low = low;
    e.high = offset < end ? min_u32(4, end - offset) : low;
    return e;
}

// 4 bytes of which [low, high) are those at address + low .. address + high.
CUDA_NC_KERNEL uint32_t gather_edge(const char *address, uint32_t low, uint32_t high) {
    const uint32_t shift = low_bits(address, 3);
    const char *aligned = address - shift;
    uint32_t first = low + shift < 4 ? load_word<4>(aligned) : 0;
    uint32_t second = high + shift > 4 ? load_word<4>(aligned + 4) : 0;
    return funnel_right(first, second, shift * 8);
}

template <class Locator, int Unroll>
CUDA_NC_KERNEL void scatter_edges(const part &a, const piece_counts &n, uint32_t i, uint32_t step,
                                  uint32_t limit) {
    uint32_t value[Unroll];
    edge at[Unroll];
    CUDA_NC_UNROLL
    for (int u = 0; u < Unroll; ++u) {
        uint32_t item = i + static_cast<uint32_t>(u) * step;
        at[u].low = at[u].high = 0;
        if (item < limit) {
            uint32_t block = n.by_edges.quotient(item);
            at[u] = locate_edge(locate_block<Locator>(a, block), n.by_edges.remainder(item, block));
            if (at[u].low < at[u].high) {
                value[u] = gather_edge(at[u].source, at[u].low, at[u].high);
            }
        }
    }
    CUDA_NC_UNROLL
    for (int u = 0; u < Unroll; ++u) {
        if (at[u].low < at[u].high) {
            store_part(at[u].target, value[u], at[u].low, at[u].high);
        }
    }
}

}  // namespace cuda_nc::exec
