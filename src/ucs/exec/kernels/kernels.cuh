// The kernels and, for each family, the lookup of its instances; a family is compiled in a file of
// its own.
#pragma once

#include "ucs/exec/kernels/threads.hpp"

namespace cuda_nc::exec {

// All take (part, tile_shape, per_block); only tiles read the shape. Null where none is compiled.
const void *strided_words_kernel(locator_kind kind, unsigned word_log2) noexcept;
const void *listed_words_kernel(locator_kind kind, unsigned word_log2) noexcept;
const void *windows_kernel(locator_kind kind) noexcept;
const void *tiles_kernel(unsigned word_log2) noexcept;

// 1024 threads must fit on a multiprocessor as one block (see policy.cc): at most 64 registers.
constexpr unsigned max_block_threads = 1024;

#ifdef __CUDACC__
__device__ __forceinline__ thread_place here() {
    return thread_place{threadIdx.x, blockDim.x, blockIdx.x, gridDim.x};
}

template <class Locator, int W>
__global__ void __launch_bounds__(max_block_threads, 1)
    move_words_kernel(const __grid_constant__ part a, uint32_t per_block) {
    words_thread<Locator, W>(a, per_block, here());
}

template <class Locator>
__global__ void __launch_bounds__(max_block_threads, 1)
    move_windows_kernel(const __grid_constant__ part a, uint32_t per_block) {
    windows_thread<Locator>(a, per_block, here());
}

template <int W>
__global__ void __launch_bounds__(max_block_threads, 1)
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
        tile_thread<W, true>(a, s, tile + group, thread, shared);
        __syncthreads();
        tile_thread<W, false>(a, s, tile + group, thread, shared);
        __syncthreads();
    }
}
#endif

}  // namespace cuda_nc::exec
