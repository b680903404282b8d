// Transposes: neighbours in the stream lie far apart in memory, and neighbours in memory far apart
// in the stream. A square tile of elements goes through shared memory, so that both sides are
// touched in whole sectors.
#pragma once

#include "ucs/exec/kernels/move_words.hpp"

namespace cuda_nc::exec {

// An element is a block of 1, 2, 4, 8 or 16 bytes. Rows of a tile run along dim 0 (contiguous in
// the stream), columns along dim `across`, whose stride is the smallest (contiguous in memory).
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
    fast_divide32 by_tiles_along, by_tiles_across, by_middle;
};

template <int W>
constexpr uint32_t tile_side = W >= 8 ? 32 : 64;
constexpr uint32_t tile_threads = 256;  // that share a tile

template <int W>
constexpr uint32_t tile_shared_bytes = tile_side<W> *(tile_side<W> + 1) * W;

// Where a tile begins.
struct tile_origin {
    uint32_t along, across;  // indices of its first element
    uint32_t offset;         // of its first element; only elements within the words' range count
    int64_t displacement;
};

CUDA_NC_KERNEL tile_origin locate_tile(const part &a, const tile_shape &s, uint32_t tile,
                                       uint32_t side) {
    tile_origin o;
    uint32_t rest = s.by_tiles_along.quotient(tile);
    o.along = s.by_tiles_along.remainder(tile, rest) * side;
    uint32_t rest2 = s.by_tiles_across.quotient(rest);
    o.across = s.across_begin + s.by_tiles_across.remainder(rest, rest2) * side;
    uint32_t outer = s.by_middle.quotient(rest2);
    uint32_t middle = s.by_middle.remainder(rest2, outer);
    uint32_t elements = a.dims[0].by_count.divisor;
    o.offset = (s.outer_begin + outer) * s.plane + o.across * s.pitch +
               (middle * elements + o.along) * a.block_length;
    o.displacement = pass_displacement<-1>(a, a.by_block.quotient(o.offset));
    return o;
}

// One side of the exchange: `laid_out` says which, `loading` whether into or out of shared memory.
// All threads of a tile call it for loading, meet, and call it for storing.
template <int W, bool LaidOut, bool Loading>
CUDA_NC_KERNEL void exchange_tile(const part &a, const tile_shape &s, const word_range &r,
                                  const tile_origin &o, uint32_t thread, word<W> *shared) {
    constexpr uint32_t side = tile_side<W>;
    constexpr uint32_t rows = tile_threads / side;  // at a time
    const uint32_t fast = thread % side;
    char *laid_out = a.base + o.displacement;
    char *packed = a.packed + (static_cast<int64_t>(o.offset) - static_cast<int64_t>(a.first));
    CUDA_NC_UNROLL
    for (uint32_t k = 0; k < side / rows; ++k) {
        uint32_t slow = thread / side + k * rows;
        uint32_t along = LaidOut ? slow : fast, across = LaidOut ? fast : slow;
        uint32_t relative = across * s.pitch + along * W;
        bool inside = o.along + along < a.dims[0].by_count.divisor &&
                      o.across + across < s.count_across &&
                      o.offset + relative - r.begin < r.count * W;  // wraps below the range
        if (inside) {
            char *address = LaidOut ? laid_out + along * a.dims[0].stride + across * s.stride_across
                                    : packed + relative;
            word<W> *slot = shared + along * (side + 1) + across;
            if (Loading) {
                *slot = load_word<W>(address);
            } else {
                store_word<W>(address, *slot);
            }
        }
    }
}

}  // namespace cuda_nc::exec
