// Attributes that every layer shares.
#pragma once

#ifdef __CUDACC__
// A function that runs on the host and, compiled by nvcc, on a GPU: the kernels' index arithmetic.
#define CUDA_NC_HD __host__ __device__ __forceinline__
#else
#define CUDA_NC_HD inline __attribute__((always_inline))
#endif

#define CUDA_NC_LIKELY(x) __builtin_expect(!!(x), 1)
#define CUDA_NC_UNLIKELY(x) __builtin_expect(!!(x), 0)

namespace cuda_nc {

// For loops that poll memory which another processor or a device writes: pauses the processor for
// some cycles.
inline void relax() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

}  // namespace cuda_nc

#if defined(__SANITIZE_THREAD__)
#define CUDA_NC_TSAN 1
#else
#define CUDA_NC_TSAN 0
#endif
