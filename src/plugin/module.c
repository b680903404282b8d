/*
 * libuct_cudanc.so.0, which UCX >= 1.22 loads from UCX_PLUGIN_PATH by its file name, and the shim
 * for older ones. It only pulls in libcuda_nc.so, where all state of the process lives.
 */
#include "hooks/interpose.h"
#include "uct/cuda_nc/transport.h"

__attribute__((constructor)) static void cuda_nc_module_load(void) {
    cuda_nc_interpose_install();
    cuda_nc_register_transport();
}
