// Pulls of a short list of blocks that source and target lay out alike. The tables are kernel
// parameters: with tables in GPU memory two dependent reads precede the first byte, a tenth of the
// time of 64 KiB.
#pragma once

#include "ucs/exec/kernels/plan/pipe_plan.hpp"
#include "ucs/exec/kernels/move/word.hpp"

namespace cuda_nc::exec {

constexpr uint32_t short_list_blocks = 128;  // most blocks; a power of two

// First packed byte and displacement (in granules) of each block. Entries behind the last block
// have a packed offset that no message reaches.
struct short_list {
    uint32_t packed[short_list_blocks];
    uint32_t displacement[short_list_blocks];
};

// The parameters of a launch. `source` and `target` are the addresses of displacement 0 of the
// list's frame on each side; `first` is the packed byte at which the message begins.
struct short_pull {
    pipe_arguments entries[1];  // as in lone_pull; the part is not used
    uintptr_t source = 0, target = 0;
    uint32_t first = 0;
    uint32_t first_step = 0;  // of the search: half the blocks, or more
    uint8_t granule_log2 = 0;
    uint8_t word_log2 = 0;  // both sides and all blocks are aligned to such words
    short_list list;
};

// False: `pull`, the plan's only side, is not a pull of a short list.
bool make_short_pull(const gpu::pipe_work &pull, const pipe_plan &plan,
                     short_pull *made_p) noexcept;

// The packed bytes [begin, end) of the list that one chunk moves.
struct short_piece {
    uint32_t begin, end;
};
CUDA_NC_KERNEL short_piece piece_of_short_pull(const short_pull &pull, uint32_t channel,
                                               uint32_t k) {
    const pipe_arguments &a = pull.entries[0];
    const uint32_t size = a.geometry.chunk_size, chunk = (k * a.geometry.channels + channel) * size;
    return {pull.first + chunk,
            pull.first + min_u32(chunk + size, static_cast<uint32_t>(a.length))};
}

// Moves a piece by words of W bytes; each thread has Unroll of them in flight. `list` is a copy of
// the pull's in fast memory.
template <int W, int Unroll>
CUDA_NC_KERNEL void move_short_piece(const short_pull &pull, const short_list &list,
                                     const short_piece &piece, uint32_t thread, uint32_t threads) {
    const uint32_t step = threads * W;
    for (uint32_t at = piece.begin + thread * W; at < piece.end; at += step * Unroll) {
        word<W> value[Unroll];
        uint64_t displacement[Unroll];
        CUDA_NC_UNROLL
        for (uint32_t u = 0; u < Unroll; ++u) {
            const uint32_t p = at + u * step;
            if (p < piece.end) {
                uint32_t block = 0;
                for (uint32_t s = pull.first_step; s != 0; s /= 2) {
                    block += list.packed[block + s] <= p ? s : 0;
                }
                displacement[u] = (uint64_t{list.displacement[block]} << pull.granule_log2) +
                                  (p - list.packed[block]);
                value[u] =
                    load_word<W>(reinterpret_cast<const char *>(pull.source + displacement[u]));
            }
        }
        CUDA_NC_UNROLL
        for (uint32_t u = 0; u < Unroll; ++u) {
            if (at + u * step < piece.end) {
                store_word<W>(reinterpret_cast<char *>(pull.target + displacement[u]), value[u]);
            }
        }
    }
}

}  // namespace cuda_nc::exec
