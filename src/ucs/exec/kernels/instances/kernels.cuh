// The kernels, and functions that look up their instances. Each family of kernels is compiled in a
// file of its own.
#pragma once

#include "ucs/exec/kernels/instances/end_store.cuh"
#include "ucs/exec/kernels/move/threads.hpp"

namespace cuda_nc::exec {

// The arguments of all are (part, end_mark, per_thread_block), and a piece_counts, tile_shape or
// block_lanes more for pieces, tiles and blocks. Units have unit_log2 in place of per_thread_block.
// Null: not compiled. `deep`: see unroll_words.
const void *strided_words_kernel(locator_kind kind, unsigned word_log2, bool deep) noexcept;
const void *listed_words_kernel(unsigned word_log2, bool deep) noexcept;
const void *windows_kernel(locator_kind kind) noexcept;
const void *pieces_kernel(locator_kind kind) noexcept;
const void *units_kernel(bool packing, unsigned align_log2) noexcept;
const void *tiles_kernel(unsigned word_log2) noexcept;
const void *blocks_kernel(unsigned word_log2) noexcept;

// Of a pair list; its arguments are (pair_work, end_mark). A pair_table of shared memory for each
// warp. `shared`: several warps share a pair.
const void *pairs_kernel(bool shared) noexcept;
// The same of pairs that layouts make; (layout_pair_work, end_mark).
const void *layout_pairs_kernel(bool shared) noexcept;

// 1024 threads must fit on a multiprocessor as one thread block (see policy.cc), with at most 64
// registers each; or twice, where more threads with 32 registers are better.
constexpr unsigned max_thread_block_size = 1024;
template <class Locator, int W>
constexpr bool one_depth = unroll_words<Locator, W, true> == unroll_words<Locator, W, false>;
template <class Locator, int W, bool Deep>
constexpr unsigned thread_blocks_per_sm = (std::is_same_v<Locator, uniform_locator> &&
                                           one_depth<Locator, W>) ||
                                                  (!Deep && W >= 8)
                                              ? 2
                                              : 1;

// One word for each thread block, in pinned memory; null: none.
struct end_mark {
    uint32_t *words = nullptr;
    uint32_t value = 0;
    bool into_own_memory = false;
};

#ifdef __CUDACC__
// The last thing that a thread block does. The barrier orders the stores of all its threads before
// the release.
__device__ __forceinline__ void tell_end(const end_mark &end) {
    if (end.words != nullptr) {
        __syncthreads();
        if (threadIdx.x == 0) {
            store_end(end.words + blockIdx.x, end.value, end.into_own_memory);
        }
    }
}

// A kernel may start while the one before it on its stream still runs (see launch.cc). It waits
// here, before it touches memory, until that one has ended and its writes are visible.
__device__ __forceinline__ void await_predecessor() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

__device__ __forceinline__ thread_place place() {
    return thread_place{threadIdx.x, blockDim.x, blockIdx.x, gridDim.x};
}
// The same, after which memory may be touched.
__device__ __forceinline__ thread_place here() {
    await_predecessor();
    return place();
}

template <class Locator, int W, bool Deep>
__global__ void __launch_bounds__(max_thread_block_size, thread_blocks_per_sm<Locator, W, Deep>)
    move_words_kernel(const __grid_constant__ part a, end_mark end, uint32_t per_thread_block) {
    words_thread<Locator, W, unroll_words<Locator, W, Deep>>(a, per_thread_block, here());
    tell_end(end);
}

// The kernel for `deep`, where that makes a difference.
template <class Locator, int W>
const void *words_kernel_of(bool deep) {
    if constexpr (!one_depth<Locator, W>) {
        if (!deep) {
            return reinterpret_cast<const void *>(move_words_kernel<Locator, W, false>);
        }
    }
    return reinterpret_cast<const void *>(move_words_kernel<Locator, W, true>);
}

template <class Locator>
__global__ void __launch_bounds__(max_thread_block_size, 1)
    move_windows_kernel(const __grid_constant__ part a, end_mark end, uint32_t per_thread_block) {
    windows_thread<Locator>(a, per_thread_block, here());
    tell_end(end);
}

template <class Locator>
__global__ void __launch_bounds__(max_thread_block_size, 1)
    move_pieces_kernel(const __grid_constant__ part a, end_mark end, uint32_t per_thread_block,
                       const __grid_constant__ piece_counts n) {
    pieces_thread<Locator>(a, per_thread_block, n, here());
    tell_end(end);
}

template <int W>
__global__ void __launch_bounds__(max_thread_block_size, 2)
    move_blocks_kernel(const __grid_constant__ part a, end_mark end, uint32_t per_thread_block,
                       const __grid_constant__ block_lanes n) {
    blocks_thread<W>(a, n, here());
    tell_end(end);
}

template <int W>
__global__ void __launch_bounds__(most_tiles<W> *tile_threads)
    move_tiles_kernel(const __grid_constant__ part a, end_mark end, uint32_t per_thread_block,
                      const __grid_constant__ tile_shape s) {
    extern __shared__ quad shared_bytes[];
    const thread_place at = place();
    const uint32_t group = at.thread / tile_threads, thread = at.thread % tile_threads;
    auto *shared = reinterpret_cast<word<W> *>(reinterpret_cast<char *>(shared_bytes) +
                                               group * tile_shared_bytes<W>);
    const word_range r = split_words<W>(a);
    uint32_t first = at.thread_block * per_thread_block;
    tile_work<W> work(a, s, r, first + group);
    await_predecessor();
    if (at.thread_block == 0) {
        move_edges<strided_locator<-1>>(a, r, at.thread, at.threads);
    }
    for (;;) {
        tile_thread<W, true>(a, s, r, work, thread, shared);
        __syncthreads();
        tile_thread<W, false>(a, s, r, work, thread, shared);
        first += at.grid * per_thread_block;
        if (first >= s.count) {
            break;
        }
        __syncthreads();
        work = tile_work<W>(a, s, r, first + group);
    }
    tell_end(end);
}
#endif

}  // namespace cuda_nc::exec
