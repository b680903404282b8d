// Words of 16 bytes: every x86-64.
#ifdef __x86_64__
#define HOST_TARGET
#define HOST_WIDTH 16
#define HOST_TABLE sse2_kernels
#define HOST_NAME "sse2"
#include "ucs/exec/host/kernels.inc"
#endif
