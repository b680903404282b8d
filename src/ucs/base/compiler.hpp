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

#if defined(__SANITIZE_THREAD__)
#define CUDA_NC_TSAN 1
#else
#define CUDA_NC_TSAN 0
#endif
