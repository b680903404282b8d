// Transposes: packed neighbours lie far apart in memory, and neighbours in memory far apart in the
// packed bytes. A square tile of elements goes through shared memory, so that both sides are read
// and written in whole sectors.
#pragma once

#include "ucs/exec/kernels/move/words.hpp"

namespace cuda_nc::exec {

// An element is a block of 1, 2, 4, 8 or 16 bytes. Rows of a tile run along dim 0 (neighbours are
// packed neighbours), columns along dim `across`, which has the smallest stride (neighbours in
// memory).
struct tile_shape {
    uint32_t tiles_along = 0;   // tiles that cover dim 0
    uint32_t tiles_across = 0;  // tiles that cover the indices of `across` that the part reaches
    uint32_t count = 0;         // tiles in all
    uint32_t across_begin = 0;  // first index of `across` that the part reaches
    uint32_t count_across = 0;  // its last index + 1
    uint32_t pitch = 0;         // offset, in bytes, between neighbours along `across`
    int64_t stride_across = 0;  // displacement between them
    uint32_t plane = 0;         // offset, in bytes, of one index of the dims outside `across`
    uint32_t outer_begin = 0;   // first such index that the part reaches
    uint32_t middle = 1;        // indices of the dims between dim 0 and `across`
    // Whether tiles are numbered along `across` first: then the next tile's target continues this
    // one's.
    bool across_first = false;
    fast_divide32 by_tiles_along, by_tiles_across, by_middle;
};

template <int W>
constexpr uint32_t tile_dim = W >= 8 ? 32 : 64;
constexpr uint32_t tile_threads = 128;  // threads that share a tile

template <int W>
constexpr uint32_t tile_shared_bytes = tile_dim<W> *(tile_dim<W> + 1) * W;

// Most tiles of a thread block of at most 1024 threads, in the 48 KiB of shared memory that every
// launch may have.
template <int W>
constexpr uint32_t most_tiles = (48u << 10) / tile_shared_bytes<W> < 1024 / tile_threads
                                    ? (48u << 10) / tile_shared_bytes<W>
                                    : 1024 / tile_threads;

// Where a tile begins.
struct tile_origin {
    uint32_t along, across;  // indices of its first element
    uint32_t offset;         // of its first element; elements outside the words' range are skipped
    int64_t displacement;
};

CUDA_NC_KERNEL tile_origin locate_tile(const part &a, const tile_shape &s, uint32_t tile,
                                       uint32_t dim) {
    tile_origin o;
    const fast_divide32 &by_fast = s.across_first ? s.by_tiles_across : s.by_tiles_along;
    const fast_divide32 &by_slow = s.across_first ? s.by_tiles_along : s.by_tiles_across;
    uint32_t line = by_fast.quotient(tile), plane = by_slow.quotient(line);
    uint32_t fast = by_fast.remainder(tile, line), slow = by_slow.remainder(line, plane);
    o.along = (s.across_first ? slow : fast) * dim;
    o.across = s.across_begin + (s.across_first ? fast : slow) * dim;
    if (a.num_dims == 2) {  // the usual case
        o.offset = o.across * s.pitch + o.along * a.block_length;
        o.displacement = o.along * a.dims[0].stride + o.across * s.stride_across;
        return o;
    }
    uint32_t outer = s.by_middle.quotient(plane);
    uint32_t middle = s.by_middle.remainder(plane, outer);
    uint32_t elements = a.dims[0].by_count.divisor;
    o.offset = (s.outer_begin + outer) * s.plane + o.across * s.pitch +
               (middle * elements + o.along) * a.block_length;
    o.displacement = pass_displacement<-1>(a, a.by_block.quotient(o.offset));
    return o;
}

// Moves the elements of one side, laid out or packed, into (Loading) or out of shared memory. All
// threads of a tile call it for loading, meet at a barrier, and call it for storing.
template <int W, bool LaidOut, bool Loading>
CUDA_NC_KERNEL void exchange_tile(const part &a, const tile_shape &s, const word_range &r,
                                  const tile_origin &o, uint32_t thread, word<W> *shared) {
    constexpr uint32_t dim = tile_dim<W>;
    constexpr uint32_t rows = tile_threads / dim;  // at a time
    const uint32_t fast = thread % dim;
    char *laid_out = a.base + o.displacement;
    char *packed = packed_at(a, o.offset);
    CUDA_NC_UNROLL
    for (uint32_t k = 0; k < dim / rows; ++k) {
        uint32_t slow = thread / dim + k * rows;
        uint32_t along = LaidOut ? slow : fast, across = LaidOut ? fast : slow;
        uint32_t relative = across * s.pitch + along * W;
        bool inside = o.along + along < a.dims[0].by_count.divisor &&
                      o.across + across < s.count_across &&
                      o.offset + relative - r.begin < r.count * W;  // wraps below the range
        if (inside) {
            char *address = LaidOut ? laid_out + along * a.dims[0].stride + across * s.stride_across
                                    : packed + relative;
            word<W> *slot = shared + along * (dim + 1) + across;
            if (Loading) {
                *slot = load_word<W>(address);
            } else {
                store_word<W>(address, *slot);
            }
        }
    }
}

// Whole tiles with suitable alignment move by pairs of neighbours. A thread reads two pairs that
// are neighbours on the other side, exchanges two of the four elements, and stores two pairs of the
// other side. `Loading` and the order of calls as above; `shared` holds the pairs to be stored,
// tile_dim / 2 for each index.
template <int W>
constexpr bool has_pairs = W <= 8;

template <int W>
CUDA_NC_KERNEL bool tile_takes_pairs(const part &a, const tile_shape &s, const word_range &r,
                                     const tile_origin &o, uint32_t tile) {
    if constexpr (has_pairs<W>) {
        if (tile >= s.count) {
            return false;
        }
        constexpr uint32_t dim = tile_dim<W>;
        const char *laid_out = a.base + o.displacement;
        const char *packed = packed_at(a, o.offset);
        const auto stride = static_cast<uint32_t>(a.dims[0].stride);
        const uint32_t within = (dim - 1) * s.pitch + dim * W;
        return s.stride_across == W &&
               ((low_bits(laid_out, 31) | low_bits(packed, 31) | stride | s.pitch) & (2 * W - 1)) ==
                   0 &&
               o.along + dim <= a.dims[0].by_count.divisor && o.across + dim <= s.count_across &&
               o.offset >= r.begin && o.offset - r.begin + within <= r.count * W;
    }
    return false;
}

template <int W>
CUDA_NC_KERNEL word<2 * W> join_pair(const word<W> &low, const word<W> &high) {
    if constexpr (W == 8) {
        return quad{{static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32),
                     static_cast<uint32_t>(high), static_cast<uint32_t>(high >> 32)}};
    } else {
        return static_cast<word<2 * W>>(low | static_cast<word<2 * W>>(high) << (8 * W));
    }
}
template <int W>
CUDA_NC_KERNEL word<W> part_of_pair(const word<2 * W> &pair, bool high) {
    if constexpr (W == 8) {
        return high ? (static_cast<word<8>>(pair.w[3]) << 32) | pair.w[2]
                    : (static_cast<word<8>>(pair.w[1]) << 32) | pair.w[0];
    } else {
        return static_cast<word<W>>(high ? pair >> (8 * W) : pair);
    }
}

// Where the pair (`index`, 2 * pair .. 2 * pair + 1) lies in shared memory. Lanes that write a
// column, and lanes that read a row, use different banks.
template <int W>
CUDA_NC_KERNEL uint32_t place_of_pair(uint32_t index, uint32_t pair) {
    constexpr uint32_t half = tile_dim<W> / 2, banks = 64 / W;
    return index * half + (pair ^ (index / 2 % (half < banks ? half : banks)));
}

template <int W, bool LaidOut, bool Loading>
CUDA_NC_KERNEL void exchange_pairs(const part &a, const tile_shape &s, const tile_origin &o,
                                   uint32_t thread, word<2 * W> *shared) {
    constexpr uint32_t half = tile_dim<W> / 2, rows = tile_threads / half;  // at a time
    constexpr uint32_t rounds = half / rows, at_once = 2;
    const uint32_t row = thread / half, column = thread % half;
    const int64_t pitch = LaidOut ? a.dims[0].stride : static_cast<int64_t>(s.pitch);
    char *address = (LaidOut ? a.base + o.displacement : packed_at(a, o.offset)) +
                    column * (2 * W) + (Loading ? 2 * row : row) * pitch;
    CUDA_NC_NO_UNROLL
    for (uint32_t begin = 0; begin < rounds; begin += at_once) {
        if (Loading) {
            word<2 * W> first[at_once], second[at_once];
            CUDA_NC_UNROLL
            for (uint32_t k = 0; k < at_once; ++k) {
                first[k] = load_word<2 * W>(address);
                second[k] = load_word<2 * W>(address + pitch);
                address += 2 * rows * pitch;
            }
            CUDA_NC_UNROLL
            for (uint32_t k = 0; k < at_once; ++k) {
                const uint32_t pair = row + (begin + k) * rows;
                shared[place_of_pair<W>(2 * column, pair)] = join_pair<W>(
                    part_of_pair<W>(first[k], false), part_of_pair<W>(second[k], false));
                shared[place_of_pair<W>(2 * column + 1, pair)] =
                    join_pair<W>(part_of_pair<W>(first[k], true), part_of_pair<W>(second[k], true));
            }
        } else {
            CUDA_NC_UNROLL
            for (uint32_t k = 0; k < 2 * at_once; ++k) {
                store_word<2 * W>(address,
                                  shared[place_of_pair<W>(row + (2 * begin + k) * rows, column)]);
                address += rows * pitch;
            }
        }
    }
}

}  // namespace cuda_nc::exec
