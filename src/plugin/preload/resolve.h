/*
 * Finding libcuda_nc.so, and the functions that the shim stands in front of. libc and
 * libdl only; every function may be called from any thread.
 */
#ifndef CUDA_NC_PLUGIN_RESOLVE_H
#define CUDA_NC_PLUGIN_RESOLVE_H

#include "hooks/interpose.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The replacements of libcuda_nc.so; all members NULL where it cannot serve this process. */
const cuda_nc_symbols_t *cuda_nc_find_replacements(void);

/*
 * The definition of `symbol` that a process without the shim would call: looked up in the loaded
 * library whose file name begins with `library`, else in any other object. Never NULL: where there
 * is none, the process ends with a message (without the shim it would not have linked).
 */
void *cuda_nc_find_original(const char *symbol, const char *library);

/*
 * What a call of an MPI function ("MPI_Pack") goes to: its replacement, else what a process without
 * the shim would call, another profiling library for instance. Never NULL.
 */
void *cuda_nc_find_mpi_call(const char *symbol);

/* Most pages of code whose answers are kept for a function. */
#define CUDA_NC_MAX_ORIGINALS 64

/* How the definitions of a function are found of which a process may have several, and those found.
 */
typedef struct {
    const char *symbol;
    const char *prefix; /* of its library's functions: "ucp_" */
    const char *marker; /* a function of that library which the shim does not define */
    const char *library;
    void *found[CUDA_NC_MAX_ORIGINALS]; /* private; NULL: none */
} cuda_nc_originals_t;

/*
 * The same for the code that holds `caller`: as its object calls it (ucs/base/definer.h); where
 * that does not tell, as above.
 */
void *cuda_nc_find_original_of(cuda_nc_originals_t *originals, const void *caller);

/* What that would return, where it is kept and still holds; else NULL. Searches no object. */
void *cuda_nc_find_kept_original(const cuda_nc_originals_t *originals, const void *caller);

#ifdef __cplusplus
}
#endif
#endif
