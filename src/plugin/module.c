/*
 * libuct_cudanc.so.0, which UCX >= 1.22 loads from UCX_PLUGIN_PATH by its file name. It only pulls
 * in libcuda_nc.so, where all state of the process lives.
 */
#include "hooks/interpose.h"
#include "uct/cuda_nc/transport.h"

static void install(const void *in_ucx) {
    cuda_nc_interpose_install(in_ucx);
    cuda_nc_register_transport(in_ucx);
}

/* For a program that loads the module itself. */
__attribute__((constructor)) static void cuda_nc_module_load(void) {
    install(NULL);
}

/*
 * Each UCX calls it after it has loaded the module, which runs the constructor for the first one
 * alone. Never an error: UCX would unload the module.
 */
__attribute__((visibility("default"))) int8_t ucs_module_global_init(void);
int8_t ucs_module_global_init(void) {
    install(__builtin_return_address(0));
    return 0;
}
