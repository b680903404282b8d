// The kernels and, for each family, the lookup of its instances; a family is compiled in a file of
// its own.
#pragma once

#include "ucs/exec/kernels/threads.hpp"

namespace cuda_nc::exec {

// All take (part, per_block), pieces a piece_counts and tiles a tile_shape besides; units take
// unit_log2 for per_block. Null where none is compiled.
const void *strided_words_kernel(locator_kind kind, unsigned word_log2) noexcept;
const void *listed_words_kernel(unsigned word_log2) noexcept;
const void *windows_kernel(locator_kind kind) noexcept;
const void *pieces_kernel(locator_kind kind) noexcept;
const void *units_kernel(bool packing, unsigned align_log2) noexcept;
const void *tiles_kernel(unsigned word_log2) noexcept;

// 1024 threads must fit on a multiprocessor as one block (see policy.cc): at most 64 registers; or
// as two, where many threads with 32 registers are better.
constexpr unsigned max_block_threads = 1024;
template <class Locator>
constexpr unsigned blocks_per_sm = std::is_same_v<Locator, uniform_locator> ? 2 : 1;

#ifdef __CUDACC__
__device__ __forceinline__ thread_place here() {
    return thread_place{threadIdx.x, blockDim.x, blockIdx.x, gridDim.x};
}

template <class Locator, int W>
__global__ void __launch_bounds__(max_block_threads, blocks_per_sm<Locator>)
    move_words_kernel(const __grid_constant__ part a, uint32_t per_block) {
    words_thread<Locator, W>(a, per_block, here());
}

template <class Locator>
__global__ void __launch_bounds__(max_block_threads, 1)
    move_windows_kernel(const __grid_constant__ part a, uint32_t per_block) {
    windows_thread<Locator>(a, per_block, here());
}

template <class Locator>
__global__ void __launch_bounds__(max_block_threads, 1)
    move_pieces_kernel(const __grid_constant__ part a, uint32_t per_block,
                       const __grid_constant__ piece_counts n) {
    pieces_thread<Locator>(a, per_block, n, here());
}

template <int W>
__global__ void __launch_bounds__(max_block_threads, 2)
    move_tiles_kernel(const __grid_constant__ part a, uint32_t per_block,
                      const __grid_constant__ tile_shape s) {
    extern __shared__ quad shared_bytes[];
    const thread_place at = here();
    const uint32_t group = at.thread / tile_threads, thread = at.thread % tile_threads;
    auto *shared = reinterpret_cast<word<W> *>(reinterpret_cast<char *>(shared_bytes) +
                                               group * tile_shared_bytes<W>);
    if (at.block == 0) {
        move_edges<strided_locator<-1>, W>(a, split_words<W>(a), at.thread);
    }
    for (uint32_t tile = at.block * per_block; tile < s.count; tile += at.grid * per_block) {
        const tile_origin o = locate_tile(a, s, tile + group, tile_side<W>);
        tile_thread<W, true>(a, s, o, tile + group, thread, shared);
        __syncthreads();
        tile_thread<W, false>(a, s, o, tile + group, thread, shared);
        __syncthreads();
    }
}
#endif

}  // namespace cuda_nc::exec
