/*
 * Finding libcuda_nc.so, the module, and the functions that the shim stands in front of. libc and
 * libdl only; every function may be called from any thread.
 */
#ifndef CUDA_NC_PLUGIN_RESOLVE_H
#define CUDA_NC_PLUGIN_RESOLVE_H

#include "hooks/interpose.h"

/* The replacements of libcuda_nc.so; all members NULL where it cannot serve this process. */
const cuda_nc_symbols_t *cuda_nc_find_replacements(void);

/*
 * The definition of `symbol` that a process without the shim would call: looked up in the loaded
 * library whose file name begins with `library`, else in any other object. Never NULL: where there
 * is none, the process ends with a message (without the shim it would not have linked).
 */
void *cuda_nc_find_original(const char *symbol, const char *library);

/* Loads the module that registers our transport, once, where the UCX of this process can use it. */
void cuda_nc_load_module(void);

#endif
