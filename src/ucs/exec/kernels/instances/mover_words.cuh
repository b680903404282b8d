// How a mover's kernel reads and writes what it shares with the CPU, and what its thread blocks and
// their warps share with each other.
#pragma once

#include "ucs/exec/kernels/instances/clock.cuh"
#include "ucs/exec/kernels/launch_mover.hpp"
#include "ucs/exec/kernels/move/order_moves.hpp"

namespace cuda_nc::exec {

using gpu::order_part;

constexpr unsigned all_lanes = 0xffffffffu;
// In place of a launch, in the word of a thread block: it waits no more.
constexpr uint32_t block_gave_up = 0xffffffffu;
static_assert(mover_thread_blocks <= warp_lanes && mover_threads + warp_lanes == 544,
              "a lane for each; the barriers' numbers");

// A part is read and written as a whole. Without 128-bit words of its own PTX promises that for
// halves alone, and GPUs do it for the whole. Who has read it sees what was done before it was
// written.
#if __CUDACC_VER_MAJOR__ > 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ >= 4)
#define CUDA_NC_LOAD_PART(how)                                                           \
    asm volatile("{.reg .b128 q; ld." how ".global.b128 q, [%2]; mov.b128 {%0, %1}, q;}" \
                 : "=l"(low), "=l"(high)                                                 \
                 : "l"(from)                                                             \
                 : "memory")
#define CUDA_NC_LOAD_AND_ACQUIRE(scope) CUDA_NC_LOAD_PART("acquire." scope)
#define CUDA_NC_STORE_PART                                                                     \
    asm volatile(                                                                              \
        "{.reg .b128 q; mov.b128 q, {%1, %2}; st.relaxed.gpu.global.b128 [%0], q;}" ::"l"(to), \
        "l"(low), "l"(high)                                                                    \
        : "memory")
#else
#define CUDA_NC_LOAD_PART(how)                              \
    asm volatile("ld." how ".global.v2.u64 {%0, %1}, [%2];" \
                 : "=l"(low), "=l"(high)                    \
                 : "l"(from)                                \
                 : "memory")
#define CUDA_NC_LOAD_AND_ACQUIRE(scope)  \
    CUDA_NC_LOAD_PART("relaxed." scope); \
    asm volatile("fence.acq_rel." scope ";" ::: "memory")
#define CUDA_NC_STORE_PART                                                                     \
    asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(low), "l"(high) \
                 : "memory")
#endif

__device__ __forceinline__ order_part part_of(uint64_t low, uint64_t high) {
    return {
        {static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32), static_cast<uint32_t>(high)},
        static_cast<uint32_t>(high >> 32)};
}
__device__ __forceinline__ order_part load_from_host(const order_part *from) {
    uint64_t low, high;
    CUDA_NC_LOAD_AND_ACQUIRE("sys");
    return part_of(low, high);
}
// Who uses what it says fences before.
__device__ __forceinline__ order_part load_ahead_from_host(const order_part *from) {
    uint64_t low, high;
    CUDA_NC_LOAD_PART("relaxed.sys");
    return part_of(low, high);
}
__device__ __forceinline__ order_part load_from_box(const order_part *from) {
    uint64_t low, high;
    CUDA_NC_LOAD_AND_ACQUIRE("gpu");
    return part_of(low, high);
}
__device__ __forceinline__ void store_in_box(order_part *to, const order_part &value) {
    const uint64_t low = uint64_t{value.words[1]} << 32 | value.words[0];
    const uint64_t high = uint64_t{value.tag} << 32 | value.words[2];
    CUDA_NC_STORE_PART;
}

__device__ __forceinline__ uint64_t load_word(const uint64_t *word) {
    uint64_t value;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
}
__device__ __forceinline__ void store_word(uint64_t *word, uint64_t value) {
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}
__device__ __forceinline__ uint64_t load_local(const uint64_t *word) {
    uint64_t value;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
}
__device__ __forceinline__ void store_local(uint64_t *word, uint64_t value) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}
// Of shared memory. Who has loaded a value may write what its storer has read before.
__device__ __forceinline__ uint32_t load_shared(const uint32_t *word) {
    uint32_t value;
    asm volatile("ld.acquire.cta.shared.u32 %0, [%1];"
                 : "=r"(value)
                 : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(word)))
                 : "memory");
    return value;
}
__device__ __forceinline__ void store_shared(uint32_t *word, uint32_t value) {
    asm volatile("st.release.cta.shared.u32 [%0], %1;" ::"r"(
                     static_cast<uint32_t>(__cvta_generic_to_shared(word))),
                 "r"(value)
                 : "memory");
}
// Of the threads that move: not of the warp that deals.
__device__ __forceinline__ void team_barrier() {
    static_assert(mover_threads == 512);
    asm volatile("bar.sync 1, 512;" ::: "memory");
}
// Where the threads that move, of the first thread block, wait for the warp that deals.
__device__ __forceinline__ void wait_for_dealer() {
    asm volatile("bar.sync 2, 544;" ::: "memory");
}
__device__ __forceinline__ void wake_team() {
    __threadfence_block();
    asm volatile("bar.arrive 2, 544;" ::: "memory");
}

}  // namespace cuda_nc::exec
