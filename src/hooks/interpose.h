/*
 * The contract between what is loaded into a process (the preloaded shim, or the module that UCX
 * loads) and the hooks in libcuda_nc.so. Plain C; no UCX header, no MPI header.
 */
#ifndef CUDA_NC_HOOKS_INTERPOSE_H
#define CUDA_NC_HOOKS_INTERPOSE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "hooks/interposed_mpi.h"
#include "hooks/interposed_symbols.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CUDA_NC_HOOKS_EXPORT __attribute__((visibility("default")))

#define CUDA_NC_INTERPOSE_VERSION 11

/* Our replacement of each function; null: call the original. */
typedef struct cuda_nc_symbols {
#define CUDA_NC_MEMBER(result, name, library, replacement, parameters, arguments) \
    result(*name) parameters;
    CUDA_NC_OPAL_SYMBOLS(CUDA_NC_MEMBER)
#undef CUDA_NC_MEMBER
#define CUDA_NC_MEMBER(result, name, library, replacement, parameters, arguments) \
    result(*name) CUDA_NC_ADD_CALLER parameters;
    CUDA_NC_UCP_SYMBOLS(CUDA_NC_MEMBER)
#undef CUDA_NC_MEMBER
    /*
     * To be called before the UCX that `caller` uses lists its components: registers our settings
     * and our transport with that UCX.
     */
    void (*before_components)(const void *caller);
    /*
     * Our function in place of an MPI function of interposed_mpi.h ("MPI_Pack"), or null: call the
     * original. To be asked when the function is called: then the MPI library is loaded. `next` is
     * what would be called without the shim, or null; where that is a tool's, ours passes calls on
     * to it.
     */
    void *(*find_mpi_call)(const char *name, void *next);
} cuda_nc_symbols_t;

/*
 * The one function that the shim looks up in libcuda_nc.so. Returns a table that lives as long as
 * the process, or NULL where `version` is another than ours. With ENABLE=n it replaces nothing. The
 * replacements find the original functions by themselves, through a handle of the library that
 * defines them: RTLD_NEXT does not see libraries that were loaded RTLD_LOCAL. Any thread may call.
 */
CUDA_NC_HOOKS_EXPORT const cuda_nc_symbols_t *cuda_nc_interpose(int version);

/*
 * Called by the module that UCX 1.22 and later load: once with NULL, then with an address in each
 * UCX that loads it. Redirects calls of these functions in every object that is loaded, now or
 * later, by the ucm_reloc_modify of that UCX; where that is missing or fails, by our own walk over
 * the objects that are loaded now. Does nothing the second time for the same UCX, and where the
 * shim is preloaded.
 */
CUDA_NC_HOOKS_EXPORT void cuda_nc_interpose_install(const void *in_ucx);

#ifdef __cplusplus
}
#endif
#endif
