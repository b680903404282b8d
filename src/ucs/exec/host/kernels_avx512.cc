#ifdef __x86_64__
#include <immintrin.h>

#define HOST_MASKS
#define HOST_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx2,bmi2,prfchw")))
#define HOST_WIDTH 64
#define HOST_TABLE avx512_kernels
#define HOST_NAME "avx512"
#include "ucs/exec/host/kernels.inc"
#endif
