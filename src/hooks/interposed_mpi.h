/*
 * The one list of the MPI functions that the hooks replace, where the MPI is one that packs and
 * copies GPU memory with the CPU (hooks/mpich). Made from it: the shim's definitions (of those that
 * every MPI has), the redirection of loaded objects, the originals (PMPI_...). Plain C.
 *
 * A row is X(name, suffix, serve, parameters, arguments): the function MPI_<name><suffix>. Its
 * original is PMPI_<name><suffix>; the one that takes the largest counts, PMPI_<name>_c.
 *   serve      our function in namespace cuda_nc::hooks::local, or a template
 *   arguments  the parameters' names, to pass a call on
 *
 * A handle is a word: a caller of MPICH sets its lower half, a caller of Open MPI all of it, so
 * that the shim passes on either. Arrays of handles, requests and statuses are addresses.
 */
#ifndef CUDA_NC_HOOKS_INTERPOSED_MPI_H
#define CUDA_NC_HOOKS_INTERPOSED_MPI_H

#include <stdint.h>

typedef intptr_t cuda_nc_mpi_handle;
typedef long long cuda_nc_mpi_count;

/* clang-format off */

/* The same with a request: (parameters..., request), (arguments..., request) */
#define CUDA_NC_MPI_ADD_REQUEST(...) (__VA_ARGS__, void *request)
#define CUDA_NC_MPI_PASS_REQUEST(...) (__VA_ARGS__, request)

/* A blocking function and its nonblocking form */
#define CUDA_NC_MPI_BOTH(X, name, nonblocking, S, serve, parameters, arguments)                    \
    X(name, S, serve, parameters, arguments)                                                       \
    X(nonblocking, S, serve, CUDA_NC_MPI_ADD_REQUEST parameters, CUDA_NC_MPI_PASS_REQUEST arguments)

/* N: counts; D: displacements; A: sizes in external form; H: handles */
#define CUDA_NC_MPI_PACKS(X, S, N, A, H)                                                           \
    X(Pack, S, pack,                                                                               \
      (const void *from, N count, H type, void *to, N size, N *position, H comm),                  \
      (from, count, type, to, size, position, comm))                                               \
    X(Unpack, S, unpack,                                                                           \
      (const void *from, N size, N *position, void *to, N count, H type, H comm),                  \
      (from, size, position, to, count, type, comm))                                               \
    X(Pack_external, S, pack_external,                                                             \
      (const char *form, const void *from, N count, H type, void *to, A size, A *position),        \
      (form, from, count, type, to, size, position))                                               \
    X(Unpack_external, S, unpack_external,                                                         \
      (const char *form, const void *from, A size, A *position, void *to, N count, H type),        \
      (form, from, size, position, to, count, type))

#define CUDA_NC_MPI_SENDS(X, S, serve, N, H, name, nonblocking)                                    \
    CUDA_NC_MPI_BOTH(X, name, nonblocking, S, serve,                                               \
      (const void *from, N count, H type, int dest, int tag, H comm),                              \
      (from, count, type, dest, tag, comm))

#define CUDA_NC_MPI_MESSAGES(X, S, N, H)                                                           \
    CUDA_NC_MPI_SENDS(X, S, buffered_send, N, H, Bsend, Ibsend)                                    \
    CUDA_NC_MPI_SENDS(X, S, send, N, H, Send, Isend)                                               \
    CUDA_NC_MPI_SENDS(X, S, send, N, H, Ssend, Issend)                                             \
    CUDA_NC_MPI_SENDS(X, S, send, N, H, Rsend, Irsend)                                             \
    X(Recv, S, receive,                                                                            \
      (void *to, N count, H type, int source, int tag, H comm, void *status),                      \
      (to, count, type, source, tag, comm, status))                                                \
    X(Irecv, S, start_receive,                                                                     \
      (void *to, N count, H type, int source, int tag, H comm, void *request),                     \
      (to, count, type, source, tag, comm, request))                                               \
    X(Sendrecv, S, send_receive,                                                                   \
      (const void *from, N sends, H send_type, int dest, int send_tag, void *to, N receives,       \
       H receive_type, int source, int receive_tag, H comm, void *status),                         \
      (from, sends, send_type, dest, send_tag, to, receives, receive_type, source, receive_tag,    \
       comm, status))                                                                              \
    X(Sendrecv_replace, S, replace,                                                                \
      (void *buffer, N count, H type, int dest, int send_tag, int source, int receive_tag, H comm, \
       void *status),                                                                              \
      (buffer, count, type, dest, send_tag, source, receive_tag, comm, status))

/* Since MPI 4, as large counts are */
#define CUDA_NC_MPI_PAIRS(X, S, N, H)                                                              \
    X(Isendrecv, S, start_send_receive,                                                            \
      (const void *from, N sends, H send_type, int dest, int send_tag, void *to, N receives,       \
       H receive_type, int source, int receive_tag, H comm, void *request),                        \
      (from, sends, send_type, dest, send_tag, to, receives, receive_type, source, receive_tag,    \
       comm, request))                                                                             \
    X(Isendrecv_replace, S, start_replace,                                                         \
      (void *buffer, N count, H type, int dest, int send_tag, int source, int receive_tag, H comm, \
       void *request),                                                                             \
      (buffer, count, type, dest, send_tag, source, receive_tag, comm, request))

#define CUDA_NC_MPI_COLLECTIVES(X, S, N, D, H)                                                     \
    CUDA_NC_MPI_BOTH(X, Bcast, Ibcast, S, broadcast,                                               \
      (void *buffer, N count, H type, int root, H comm), (buffer, count, type, root, comm))        \
    CUDA_NC_MPI_BOTH(X, Gather, Igather, S, gather,                                                \
      (const void *from, N sends, H send_type, void *to, N receives, H receive_type, int root,     \
       H comm),                                                                                    \
      (from, sends, send_type, to, receives, receive_type, root, comm))                            \
    CUDA_NC_MPI_BOTH(X, Scatter, Iscatter, S, scatter,                                             \
      (const void *from, N sends, H send_type, void *to, N receives, H receive_type, int root,     \
       H comm),                                                                                    \
      (from, sends, send_type, to, receives, receive_type, root, comm))                            \
    CUDA_NC_MPI_BOTH(X, Gatherv, Igatherv, S, gather_varying,                                      \
      (const void *from, N sends, H send_type, void *to, const N *receives, const D *places,       \
       H receive_type, int root, H comm),                                                          \
      (from, sends, send_type, to, receives, places, receive_type, root, comm))                    \
    CUDA_NC_MPI_BOTH(X, Scatterv, Iscatterv, S, scatter_varying,                                   \
      (const void *from, const N *sends, const D *places, H send_type, void *to, N receives,       \
       H receive_type, int root, H comm),                                                          \
      (from, sends, places, send_type, to, receives, receive_type, root, comm))

/* Between all ranks, or between neighbours: prefix is empty or Neighbor_, iprefix I or Ineighbor_ */
#define CUDA_NC_MPI_EXCHANGES(X, S, N, D, W, H, serve, Allgather, Allgatherv, Alltoall, Alltoallv, \
                              Alltoallw, Iallgather, Iallgatherv, Ialltoall, Ialltoallv,           \
                              Ialltoallw)                                                          \
    CUDA_NC_MPI_BOTH(X, Allgather, Iallgather, S, serve##allgather,                                \
      (const void *from, N sends, H send_type, void *to, N receives, H receive_type, H comm),      \
      (from, sends, send_type, to, receives, receive_type, comm))                                  \
    CUDA_NC_MPI_BOTH(X, Allgatherv, Iallgatherv, S, serve##allgather_varying,                      \
      (const void *from, N sends, H send_type, void *to, const N *receives, const D *places,       \
       H receive_type, H comm),                                                                    \
      (from, sends, send_type, to, receives, places, receive_type, comm))                          \
    CUDA_NC_MPI_BOTH(X, Alltoall, Ialltoall, S, serve##alltoall,                                   \
      (const void *from, N sends, H send_type, void *to, N receives, H receive_type, H comm),      \
      (from, sends, send_type, to, receives, receive_type, comm))                                  \
    CUDA_NC_MPI_BOTH(X, Alltoallv, Ialltoallv, S, serve##alltoall_varying,                         \
      (const void *from, const N *sends, const D *from_places, H send_type, void *to,              \
       const N *receives, const D *to_places, H receive_type, H comm),                             \
      (from, sends, from_places, send_type, to, receives, to_places, receive_type, comm))          \
    CUDA_NC_MPI_BOTH(X, Alltoallw, Ialltoallw, S, serve##alltoall_typed,                           \
      (const void *from, const N *sends, const W *from_places, const void *send_types, void *to,   \
       const N *receives, const W *to_places, const void *receive_types, H comm),                  \
      (from, sends, from_places, send_types, to, receives, to_places, receive_types, comm))

#define CUDA_NC_MPI_REDUCTIONS(X, S, N, H)                                                         \
    CUDA_NC_MPI_BOTH(X, Reduce, Ireduce, S, reduce,                                                \
      (const void *from, void *to, N count, H type, H op, int root, H comm),                       \
      (from, to, count, type, op, root, comm))                                                     \
    CUDA_NC_MPI_BOTH(X, Allreduce, Iallreduce, S, reduce_each,                                     \
      (const void *from, void *to, N count, H type, H op, H comm),                                 \
      (from, to, count, type, op, comm))                                                           \
    CUDA_NC_MPI_BOTH(X, Scan, Iscan, S, reduce_each,                                               \
      (const void *from, void *to, N count, H type, H op, H comm),                                 \
      (from, to, count, type, op, comm))                                                           \
    CUDA_NC_MPI_BOTH(X, Exscan, Iexscan, S, reduce_before,                                           \
      (const void *from, void *to, N count, H type, H op, H comm),                                 \
      (from, to, count, type, op, comm))                                                           \
    CUDA_NC_MPI_BOTH(X, Reduce_scatter_block, Ireduce_scatter_block, S, reduce_block,              \
      (const void *from, void *to, N count, H type, H op, H comm),                                 \
      (from, to, count, type, op, comm))                                                           \
    CUDA_NC_MPI_BOTH(X, Reduce_scatter, Ireduce_scatter, S, reduce_varying,                        \
      (const void *from, void *to, const N *counts, H type, H op, H comm),                         \
      (from, to, counts, type, op, comm))                                                          \
    X(Reduce_local, S, reduce_locally,                                                             \
      (const void *from, void *to, N count, H type, H op), (from, to, count, type, op))

#define CUDA_NC_MPI_SIZED(X, S, N, A, D, H)                                                        \
    CUDA_NC_MPI_PACKS(X, S, N, A, H)                                                               \
    CUDA_NC_MPI_MESSAGES(X, S, N, H)                                                               \
    CUDA_NC_MPI_COLLECTIVES(X, S, N, D, H)                                                         \
    CUDA_NC_MPI_EXCHANGES(X, S, N, D, D, H, , Allgather, Allgatherv, Alltoall, Alltoallv,          \
                          Alltoallw, Iallgather, Iallgatherv, Ialltoall, Ialltoallv, Ialltoallw)   \
    CUDA_NC_MPI_EXCHANGES(X, S, N, D, intptr_t, H, neighbor_, Neighbor_allgather,                  \
                          Neighbor_allgatherv, Neighbor_alltoall, Neighbor_alltoallv,              \
                          Neighbor_alltoallw, Ineighbor_allgather, Ineighbor_allgatherv,           \
                          Ineighbor_alltoall, Ineighbor_alltoallv, Ineighbor_alltoallw)            \
    CUDA_NC_MPI_REDUCTIONS(X, S, N, H)

/* Those that every MPI has: the shim defines them. */
#define CUDA_NC_MPI_SHIM_SYMBOLS(X)                                                                \
    CUDA_NC_MPI_SIZED(X, , int, intptr_t, int, cuda_nc_mpi_handle)

/* Those that some lack. Programs call what is defined, so that the shim must not define them. */
#define CUDA_NC_MPI_NEW_SYMBOLS(X)                                                                 \
    CUDA_NC_MPI_PAIRS(X, , int, cuda_nc_mpi_handle)                                                \
    CUDA_NC_MPI_SIZED(X, _c, cuda_nc_mpi_count, cuda_nc_mpi_count, intptr_t, cuda_nc_mpi_handle)   \
    CUDA_NC_MPI_PAIRS(X, _c, cuda_nc_mpi_count, cuda_nc_mpi_handle)

#define CUDA_NC_MPI_SYMBOLS(X) CUDA_NC_MPI_SHIM_SYMBOLS(X) CUDA_NC_MPI_NEW_SYMBOLS(X)

/* What callers do with requests of ours. No forms for large counts; the shim leaves them out. */
#define CUDA_NC_MPI_REQUEST_SYMBOLS(X)                                                             \
    X(Request_get_status, , get_status,                                                            \
      (cuda_nc_mpi_handle request, int *flag, void *status), (request, flag, status))              \
    X(Request_free, , free_request, (void *request), (request))

/* clang-format on */

#endif
