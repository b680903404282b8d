/*
 * Public C API of ucx-cuda-nc: non-contiguous memory of GPU and host as UCP datatypes.
 *
 * All functions are thread safe. Statuses are UCX's. Buffers may lie in host, pinned host, GPU or
 * managed memory; which it is, is looked up for each message.
 */
#ifndef CUDA_NC_H
#define CUDA_NC_H

#include <stddef.h>
#include <stdint.h>
#include <ucp/api/ucp.h>

#if defined(__GNUC__)
#define CUDA_NC_API __attribute__((visibility("default")))
#else
#define CUDA_NC_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* "major.minor.patch" of the library in use. */
CUDA_NC_API const char *cuda_nc_version(void);

/* Bytes [displacement, displacement + length) relative to the buffer's address. */
typedef struct cuda_nc_block {
    ptrdiff_t displacement;
    size_t length;
} cuda_nc_block_t;

/*
 * A UCP datatype for ucp_tag_send_nbx and its family. One element is the given blocks in packed
 * order; UCP's count repeats it, `extent` bytes apart (any sign). The blocks are copied.
 *
 * UCS_ERR_INVALID_PARAM   null pointer, or a total above 2^63 - 1 bytes
 * UCS_ERR_NO_MEMORY
 * UCS_ERR_UNSUPPORTED     no libucp.so.0 is loaded in this process
 */
CUDA_NC_API ucs_status_t cuda_nc_dt_create(const cuda_nc_block_t *blocks, size_t num_blocks,
                                           ptrdiff_t extent, ucp_datatype_t *datatype_p);

/* May be called while messages use the datatype: they keep what they need. */
CUDA_NC_API void cuda_nc_dt_destroy(ucp_datatype_t datatype);

/*
 * The simulated GPU (UCX_CUDA_NC_GPU=sim), for tests. Memory of cuda_nc_sim_malloc may not be
 * touched by the CPU: a touch ends the process with SIGSEGV. Returns NULL where the simulated GPU
 * is not chosen, or memory is exhausted.
 */
CUDA_NC_API void *cuda_nc_sim_malloc(size_t size);
CUDA_NC_API void cuda_nc_sim_free(void *address);
/* Each address may lie in simulated or host memory. Returns when the bytes are there. */
CUDA_NC_API void cuda_nc_sim_memcpy(void *destination, const void *source, size_t length);

#ifdef __cplusplus
}
#endif
#endif
