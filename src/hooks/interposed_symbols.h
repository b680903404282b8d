/*
 * The one list of the functions that the hooks replace. Made from it: the table of replacements
 * (interpose.h), the redirection of loaded objects (interpose.cc), the shim's definitions
 * (plugin/preload/preload.c) and the addresses of Open MPI's own functions
 * (open_mpi/opal_functions.hpp). Plain C.
 *
 * A row is X(result, name, library, replacement, parameters, arguments):
 *   library      how the file name of the library that defines the function begins
 *   replacement  our function, in namespace cuda_nc::hooks
 *   arguments    the parameters' names, to pass a call on
 *
 * UCX's ucs_status_t is a packed enumeration of one byte: int8_t here. A row is also a member of
 * cuda_nc_symbols_t: whoever adds, removes or reorders rows raises CUDA_NC_INTERPOSE_VERSION.
 *
 * The replacements of UCP's functions have one more parameter, `const void *caller`, an address in
 * the code that calls: it tells which of several copies of UCX is meant.
 */
#ifndef CUDA_NC_HOOKS_INTERPOSED_SYMBOLS_H
#define CUDA_NC_HOOKS_INTERPOSED_SYMBOLS_H

/* clang-format off */
#define CUDA_NC_OPAL_SYMBOLS(X)                                                                    \
    X(int32_t, opal_convertor_prepare_for_send, "libopen-pal", prepare_for_send,                   \
      (void *convertor, const void *datatype, size_t count, const void *buffer),                   \
      (convertor, datatype, count, buffer))                                                        \
    X(int32_t, opal_convertor_prepare_for_recv, "libopen-pal", prepare_for_recv,                   \
      (void *convertor, const void *datatype, size_t count, const void *buffer),                   \
      (convertor, datatype, count, buffer))                                                        \
    X(int32_t, opal_convertor_pack, "libopen-pal", convertor_pack,                                 \
      (void *convertor, struct iovec *parts, uint32_t *num_parts_p, size_t *length_p),             \
      (convertor, parts, num_parts_p, length_p))                                                   \
    X(int32_t, opal_convertor_unpack, "libopen-pal", convertor_unpack,                             \
      (void *convertor, struct iovec *parts, uint32_t *num_parts_p, size_t *length_p),             \
      (convertor, parts, num_parts_p, length_p))                                                   \
    X(int32_t, opal_datatype_copy_content_same_ddt, "libopen-pal", copy_same,                      \
      (const void *datatype, int32_t count, char *destination, char *source),                      \
      (datatype, count, destination, source))                                                      \
    X(int32_t, ompi_datatype_sndrcv, "libmpi", move_between,                                       \
      (const void *from, size_t from_count, const void *from_type, void *to, size_t to_count,      \
       const void *to_type),                                                                       \
      (from, from_count, from_type, to, to_count, to_type))                                        \
    X(int32_t, opal_datatype_add, "libopen-pal", datatype_add,                                     \
      (void *base, const void *added, size_t count, ptrdiff_t displacement, ptrdiff_t extent),     \
      (base, added, count, displacement, extent))                                                  \
    X(int32_t, opal_datatype_resize, "libopen-pal", datatype_resize,                               \
      (void *datatype, ptrdiff_t lb, ptrdiff_t extent), (datatype, lb, extent))                    \
    X(int32_t, opal_datatype_commit, "libopen-pal", datatype_commit, (void *datatype), (datatype))

/* Every message of UCP comes through these: they are redirected only where a process may profit. */
#define CUDA_NC_UCP_MESSAGE_SYMBOLS(X)                                                             \
    X(void *, ucp_tag_send_nbx, "libucp", tag_send_nbx,                                            \
      (void *ep, const void *buffer, size_t count, uint64_t tag, const void *param),               \
      (ep, buffer, count, tag, param))                                                             \
    X(void *, ucp_tag_send_sync_nbx, "libucp", tag_send_sync_nbx,                                  \
      (void *ep, const void *buffer, size_t count, uint64_t tag, const void *param),               \
      (ep, buffer, count, tag, param))                                                             \
    X(void *, ucp_tag_recv_nbx, "libucp", tag_recv_nbx,                                            \
      (void *worker, void *buffer, size_t count, uint64_t tag, uint64_t tag_mask,                  \
       const void *param),                                                                         \
      (worker, buffer, count, tag, tag_mask, param))                                               \
    X(void *, ucp_tag_msg_recv_nbx, "libucp", tag_msg_recv_nbx,                                    \
      (void *worker, void *buffer, size_t count, void *message, const void *param),                \
      (worker, buffer, count, message, param))                                                     \
    X(void *, ucp_am_send_nbx, "libucp", am_send_nbx,                                              \
      (void *ep, unsigned id, const void *header, size_t header_length, const void *buffer,        \
       size_t count, const void *param),                                                           \
      (ep, id, header, header_length, buffer, count, param))                                       \
    X(void *, ucp_am_recv_data_nbx, "libucp", am_recv_data_nbx,                                    \
      (void *worker, void *data, void *buffer, size_t count, const void *param),                   \
      (worker, data, buffer, count, param))

#define CUDA_NC_UCP_OBJECT_SYMBOLS(X)                                                              \
    X(int8_t, ucp_dt_create_generic, "libucp", create_generic,                                     \
      (const void *operations, void *context, uint64_t *datatype_p),                               \
      (operations, context, datatype_p))                                                           \
    X(void, ucp_dt_destroy, "libucp", destroy_datatype, (uint64_t datatype), (datatype))           \
    X(void, ucp_request_cancel, "libucp", request_cancel, (void *worker, void *request),           \
      (worker, request))                                                                           \
    X(int8_t, ucp_worker_create, "libucp", worker_create,                                          \
      (void *context, const void *params, void **worker_p), (context, params, worker_p))           \
    X(int8_t, ucp_ep_create, "libucp", ep_create,                                                  \
      (void *worker, const void *params, void **ep_p), (worker, params, ep_p))

#define CUDA_NC_UCP_SYMBOLS(X) CUDA_NC_UCP_MESSAGE_SYMBOLS(X) CUDA_NC_UCP_OBJECT_SYMBOLS(X)

/* CUDA_NC_ADD_CALLER (parameters), CUDA_NC_PASS_CALLER (arguments) */
#define CUDA_NC_ADD_CALLER(...) (__VA_ARGS__, const void *caller)
#define CUDA_NC_PASS_CALLER(...) (__VA_ARGS__, caller)
/* clang-format on */

#endif
