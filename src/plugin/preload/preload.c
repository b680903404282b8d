/*
 * libcuda_nc_preload.so: the only library that is ever preloaded. It needs libc alone, does nothing
 * when it is loaded, and defines the functions that the hooks replace (hooks/interposed_symbols.h,
 * hooks/interposed_mpi.h).
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

CUDA_NC_OPAL_SYMBOLS(INTERPOSED)

/* The same for functions of which a process may have several originals. */
#define UCP_INTERPOSED(result, name, library, replacement, parameters, arguments)                  \
    EXPORT result name parameters {                                                                \
        static result(*known) CUDA_NC_ADD_CALLER parameters;                                       \
        static cuda_nc_originals_t originals = {                                                   \
            #name, "ucp_", "ucp_get_version", library, {NULL}};                                    \
        const void *caller = __builtin_return_address(0);                                          \
        result(*target) CUDA_NC_ADD_CALLER parameters = __atomic_load_n(&known, __ATOMIC_ACQUIRE); \
        result(*original) parameters;                                                              \
        void *address;                                                                             \
        if (__builtin_expect(target == NULL, 0)) {                                                 \
            target = cuda_nc_find_replacements()->name;                                            \
            if (target == NULL) {                                                                  \
                address = cuda_nc_find_original_of(&originals, caller);                            \
                memcpy(&original, &address, sizeof(original));                                     \
                return original arguments;                                                         \
            }                                                                                      \
            __atomic_store_n(&known, target, __ATOMIC_RELEASE);                                    \
        }                                                                                          \
        return target CUDA_NC_PASS_CALLER arguments;                                               \
    }

CUDA_NC_UCP_SYMBOLS(UCP_INTERPOSED)

/* MPI's: which replacement, if any, is known when the MPI library is there. */
#define MPI_INTERPOSED(name, suffix, serve, parameters, arguments)           \
    EXPORT int MPI_##name##suffix parameters {                               \
        static int(*known) parameters;                                       \
        int(*target) parameters = __atomic_load_n(&known, __ATOMIC_ACQUIRE); \
        if (__builtin_expect(target == NULL, 0)) {                           \
            void *found = cuda_nc_find_mpi_call("MPI_" #name #suffix);       \
            memcpy(&target, &found, sizeof(target));                         \
            __atomic_store_n(&known, target, __ATOMIC_RELEASE);              \
        }                                                                    \
        return target arguments;                                             \
    }

/*
 * Not those that some MPIs lack: Open MPI 5.0 has none of large counts, 4.1 no MPI_Isendrecv, and
 * mpi4py calls what it finds. Where the MPI has them, the hooks redirect their calls
 * (hooks/interpose.cc).
 */
CUDA_NC_MPI_SHIM_SYMBOLS(MPI_INTERPOSED)

/*
 * Not replaced, but used as a signal: UCX asks for its components here. Our transport must be
 * registered before UCX looks for it, and our settings before UCX warns that they are unused.
 */
EXPORT int8_t uct_query_components(void *components_p, unsigned *num_components_p) {
    static cuda_nc_originals_t originals = {
        "uct_query_components", "uct_", "uct_release_component_list", "libuct", {NULL}};
    const void *caller = __builtin_return_address(0);
    const cuda_nc_symbols_t *symbols = cuda_nc_find_replacements();
    int8_t (*original)(void *, unsigned *);
    void *address;
    if (symbols->before_components != NULL) {
        symbols->before_components(caller);
    }
    address = cuda_nc_find_original_of(&originals, caller);
    memcpy(&original, &address, sizeof(original));
    return original(components_p, num_components_p);
}
