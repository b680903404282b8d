#ifdef __x86_64__
#define HOST_TARGET __attribute__((target("avx2,bmi2,prfchw")))
#define HOST_WIDTH 32
#define HOST_TABLE avx2_kernels
#define HOST_NAME "avx2"
#include "ucs/exec/host/kernels.inc"
#endif
