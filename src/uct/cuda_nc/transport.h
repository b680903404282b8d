/* What the module that UCX loads asks of libcuda_nc.so for the transport. */
#ifndef CUDA_NC_UCT_TRANSPORT_H
#define CUDA_NC_UCT_TRANSPORT_H

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Registers the transport cuda_nc with the UCX of this process, where the settings ask for it and
 * that UCX is served. Idempotent.
 */
__attribute__((visibility("default"))) void cuda_nc_register_transport(void);

#ifdef __cplusplus
}
#endif
#endif
