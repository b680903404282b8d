/*
 * The contract between what is loaded into a process (the preloaded shim, or the module that UCX
 * loads) and the hooks in libcuda_nc.so. Plain C; no UCX, no MPI header.
 *
 * libcuda_nc.so exports cuda_nc_interpose(): the one entry that the shim looks up. For each symbol
 * the shim resolves the original definition lazily and passes every call on; a NULL member, or no
 * libcuda_nc.so at all, means that the original alone is called.
 */
#ifndef CUDA_NC_HOOKS_INTERPOSE_H
#define CUDA_NC_HOOKS_INTERPOSE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CUDA_NC_HOOKS_EXPORT __attribute__((visibility("default")))

#define CUDA_NC_INTERPOSE_VERSION 2

/* ucs_status_t is a packed one-byte enumeration: declared as int8_t here. */
typedef int8_t (*cuda_nc_dt_create_f)(const void *ops, void *context, uint64_t *datatype_p);
typedef void (*cuda_nc_dt_destroy_f)(uint64_t datatype);
typedef int32_t (*cuda_nc_convertor_prepare_f)(void *convertor, const void *datatype, size_t count,
                                               const void *buffer);
typedef int32_t (*cuda_nc_convertor_move_f)(void *convertor, struct iovec *iov, uint32_t *count,
                                            size_t *max_data);
typedef int32_t (*cuda_nc_local_copy_f)(const void *datatype, int32_t count, char *destination,
                                        char *source);
typedef void *(*cuda_nc_tag_send_f)(void *ep, const void *buffer, size_t count, uint64_t tag,
                                    const void *param);

/* The same members serve twice: filled with originals for the hooks, and with replacements. */
typedef struct cuda_nc_symbols {
    cuda_nc_dt_create_f ucp_dt_create_generic;
    cuda_nc_dt_destroy_f ucp_dt_destroy;
    cuda_nc_convertor_prepare_f opal_convertor_prepare_for_send;
    cuda_nc_convertor_prepare_f opal_convertor_prepare_for_recv;
    cuda_nc_convertor_move_f opal_convertor_pack;
    cuda_nc_convertor_move_f opal_convertor_unpack;
    cuda_nc_local_copy_f opal_datatype_copy_content_same_ddt;
    cuda_nc_tag_send_f ucp_tag_send_nbx;
} cuda_nc_symbols_t;

/*
 * Replacements for every symbol, or NULL where `version` is not served. The hooks find originals
 * by themselves, by handle (never by RTLD_NEXT: a library loaded RTLD_LOCAL is invisible to it).
 */
CUDA_NC_HOOKS_EXPORT const cuda_nc_symbols_t *cuda_nc_interpose(int version);

/*
 * Called by the module that UCX >= 1.22 loads: redirects the symbols of every loaded and later
 * loaded object by ucm_reloc_modify, or by an own walk over the loaded objects. Idempotent; does
 * nothing where the shim is preloaded.
 */
CUDA_NC_HOOKS_EXPORT void cuda_nc_interpose_install(void);

#ifdef __cplusplus
}
#endif
#endif
