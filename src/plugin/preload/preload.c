/*
 * libcuda_nc_preload.so: the only library that is ever preloaded. It needs libc alone, does nothing
 * when it is loaded, and defines the functions that the hooks replace (hooks/interposed_symbols.h).
 * Each call goes to libcuda_nc.so, or to the original where that does not serve.
 *
 * An address that was looked up is kept in a word that several threads may write at the same time:
 * they write the same value.
 */
#define _GNU_SOURCE
#include <string.h>

#include "resolve.h"

#define EXPORT __attribute__((visibility("default")))

/* Tells the module that the shim is there. */
EXPORT extern const int cuda_nc_preload_version;
const int cuda_nc_preload_version = CUDA_NC_INTERPOSE_VERSION;

/* Defines `name`, which calls the replacement or else the original. */
#define INTERPOSED(result, name, library, replacement, parameters, arguments)   \
    EXPORT result name parameters {                                             \
        static result(*known) parameters;                                       \
        result(*target) parameters = __atomic_load_n(&known, __ATOMIC_ACQUIRE); \
        if (__builtin_expect(target == NULL, 0)) {                              \
            target = cuda_nc_find_replacements()->name;                         \
            if (target == NULL) {                                               \
                void *original = cuda_nc_find_original(#name, library);         \
                memcpy(&target, &original, sizeof(target));                     \
            }                                                                   \
            __atomic_store_n(&known, target, __ATOMIC_RELEASE);                 \
        }                                                                       \
        return target arguments;                                                \
    }

CUDA_NC_INTERPOSED_SYMBOLS(INTERPOSED)

/*
 * Not replaced, but used as a signal: UCX asks for its components here. Our transport must be
 * registered before UCX looks for it, and our settings before UCX warns that they are unused.
 */
EXPORT int8_t uct_query_components(void *components_p, unsigned *num_components_p) {
    typedef int8_t (*query_f)(void *, unsigned *);
    static query_f known;
    query_f original = __atomic_load_n(&known, __ATOMIC_ACQUIRE);
    cuda_nc_find_replacements();
    cuda_nc_load_module();
    if (original == NULL) {
        void *address = cuda_nc_find_original("uct_query_components", "libuct");
        memcpy(&original, &address, sizeof(original));
        __atomic_store_n(&known, original, __ATOMIC_RELEASE);
    }
    return original(components_p, num_components_p);
}
