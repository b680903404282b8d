/* What the module that UCX loads, and the hooks, ask of libcuda_nc.so for the transport. */
#ifndef CUDA_NC_UCT_TRANSPORT_H
#define CUDA_NC_UCT_TRANSPORT_H

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Registers the transport cuda_nc, where the settings ask for it, with the UCX that holds the
 * address, or that is used by the object which holds it; NULL: with the only UCX of the process.
 * Does nothing where that is not clear, or where this UCX is not served. Idempotent.
 */
__attribute__((visibility("default"))) void cuda_nc_register_transport(const void *in_ucx);

/* Whether this process is to have the transport: 1 or 0. The answer remains the same. */
int cuda_nc_transport_is_wanted(void);

#ifdef __cplusplus
}
#endif
#endif
