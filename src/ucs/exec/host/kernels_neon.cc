// Words of 16 bytes: every 64-bit Arm.
#ifdef __aarch64__
#define HOST_TARGET
#define HOST_WIDTH 16
#define HOST_TABLE neon_kernels
#define HOST_NAME "neon"
#include "ucs/exec/host/kernels.inc"
#endif
