/*
 * libcuda_nc_preload.so: the only library that is ever preloaded. It needs libc alone, does nothing
 * when it is loaded, and defines the symbols that the hooks stand in front of. Each call goes to
 * libcuda_nc.so, or to the original where that does not serve.
 *
 * A function that is found is remembered in a word that threads may write at the same time: they
 * write the same value.
 */
#define _GNU_SOURCE
#include <string.h>

#include "resolve.h"

#define EXPORT __attribute__((visibility("default")))

/* Tells the module that the shim is there. */
EXPORT extern const int cuda_nc_preload_version;
const int cuda_nc_preload_version = CUDA_NC_INTERPOSE_VERSION;

/* Declares NAME and defines target_NAME(): the replacement, or the original from LIBRARY. */
#define INTERPOSED(type, name, library)                                 \
    static type target_##name(void) {                                   \
        static type known;                                              \
        type target = __atomic_load_n(&known, __ATOMIC_ACQUIRE);        \
        if (__builtin_expect(target == NULL, 0)) {                      \
            target = cuda_nc_find_replacements()->name;                 \
            if (target == NULL) {                                       \
                void *original = cuda_nc_find_original(#name, library); \
                memcpy(&target, &original, sizeof(target));             \
            }                                                           \
            __atomic_store_n(&known, target, __ATOMIC_RELEASE);         \
        }                                                               \
        return target;                                                  \
    }

INTERPOSED(cuda_nc_dt_create_f, ucp_dt_create_generic, "libucp")
INTERPOSED(cuda_nc_dt_destroy_f, ucp_dt_destroy, "libucp")
INTERPOSED(cuda_nc_convertor_prepare_f, opal_convertor_prepare_for_send, "libopen-pal")
INTERPOSED(cuda_nc_convertor_prepare_f, opal_convertor_prepare_for_recv, "libopen-pal")
INTERPOSED(cuda_nc_convertor_move_f, opal_convertor_pack, "libopen-pal")
INTERPOSED(cuda_nc_convertor_move_f, opal_convertor_unpack, "libopen-pal")
INTERPOSED(cuda_nc_local_copy_f, opal_datatype_copy_content_same_ddt, "libopen-pal")
INTERPOSED(cuda_nc_tag_send_f, ucp_tag_send_nbx, "libucp")

EXPORT int8_t ucp_dt_create_generic(const void *ops, void *context, uint64_t *datatype_p) {
    return target_ucp_dt_create_generic()(ops, context, datatype_p);
}

EXPORT void ucp_dt_destroy(uint64_t datatype) {
    target_ucp_dt_destroy()(datatype);
}

EXPORT int32_t opal_convertor_prepare_for_send(void *convertor, const void *datatype, size_t count,
                                               const void *buffer) {
    return target_opal_convertor_prepare_for_send()(convertor, datatype, count, buffer);
}

EXPORT int32_t opal_convertor_prepare_for_recv(void *convertor, const void *datatype, size_t count,
                                               const void *buffer) {
    return target_opal_convertor_prepare_for_recv()(convertor, datatype, count, buffer);
}

EXPORT int32_t opal_convertor_pack(void *convertor, struct iovec *iov, uint32_t *count,
                                   size_t *max_data) {
    return target_opal_convertor_pack()(convertor, iov, count, max_data);
}

EXPORT int32_t opal_convertor_unpack(void *convertor, struct iovec *iov, uint32_t *count,
                                     size_t *max_data) {
    return target_opal_convertor_unpack()(convertor, iov, count, max_data);
}

EXPORT int32_t opal_datatype_copy_content_same_ddt(const void *datatype, int32_t count,
                                                   char *destination, char *source) {
    return target_opal_datatype_copy_content_same_ddt()(datatype, count, destination, source);
}

EXPORT void *ucp_tag_send_nbx(void *ep, const void *buffer, size_t count, uint64_t tag,
                              const void *param) {
    return target_ucp_tag_send_nbx()(ep, buffer, count, tag, param);
}

/*
 * UCX asks for its components here: ours must be registered before it looks, and our settings
 * before it calls them unused.
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
