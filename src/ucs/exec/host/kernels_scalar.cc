// Words of 8 bytes: any processor.
#define HOST_TARGET
#define HOST_WIDTH 8
#define HOST_TABLE scalar_kernels
#define HOST_NAME "scalar"
#include "ucs/exec/host/kernels.inc"
