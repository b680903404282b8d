// MPICH's own functions and constants, for the calls that we stand in front of.
#pragma once

#include <cstdint>

#include "hooks/common/mpi_library.hpp"
#include "hooks/interposed_mpi.h"

namespace cuda_nc::hooks::local {

using handle = cuda_nc_mpi_handle;  // MPICH looks at its lower 32 bits only
using count_t = cuda_nc_mpi_count;

constexpr handle byte_type = 0x4c00010d, packed_type = 0x4c00010f;
constexpr handle world = 0x44000000, self = 0x44000001;
constexpr int null_request = 0x2c000000;
constexpr int process_null = -1, root_here = -3;
constexpr int error_truncate = 14, error_other = 15, error_no_memory = 34;
enum topology { graph = 1, cartesian = 2, distributed_graph = 3 };

inline const void *const in_place = reinterpret_cast<const void *>(-1);

// An MPI_Status; the last three are source, tag, error.
struct status_words {
    static constexpr int error = 4;  // the place of MPI_ERROR, which is the last
    int words[error + 1] = {0, 0, process_null, 0, 0};
};
inline void *const status_ignore = reinterpret_cast<void *>(1);

struct pmpi_functions {
    // Null where this release does not have the function.
#define MEMBER(name, suffix, serve, parameters, arguments) int(*name##suffix) parameters = nullptr;
    CUDA_NC_MPI_SYMBOLS(MEMBER)
    CUDA_NC_MPI_REQUEST_SYMBOLS(MEMBER)
#undef MEMBER
    int (*Initialized)(int *flag_p) = nullptr;
    int (*Comm_rank)(handle, int *) = nullptr;
    int (*Comm_size)(handle, int *) = nullptr;
    int (*Comm_remote_size)(handle, int *) = nullptr;
    int (*Comm_test_inter)(handle, int *) = nullptr;
    int (*Comm_create_keyval)(int (*copy)(int, int, void *, void *, void *, int *),
                              int (*forget)(int, int, void *, void *), int *key_p,
                              void *) = nullptr;
    int (*Comm_set_attr)(handle, int key, void *value) = nullptr;
    int (*Comm_free_keyval)(int *key_p) = nullptr;
    int (*Comm_call_errhandler)(handle, int) = nullptr;
    int (*Type_get_extent)(handle, intptr_t *lower_bound_p, intptr_t *extent_p) = nullptr;
    int (*Type_get_true_extent)(handle, intptr_t *lower_bound_p, intptr_t *extent_p) = nullptr;
    int (*Type_size_c)(handle, count_t *) = nullptr;
    int (*Type_contiguous_c)(count_t, handle, int *made_p) = nullptr;
    int (*Type_create_resized)(handle, intptr_t lower_bound, intptr_t extent,
                               int *made_p) = nullptr;
    int (*Type_commit)(int *) = nullptr;
    int (*Type_free)(int *) = nullptr;
    int (*Pack_external_size_c)(const char *, count_t, handle, count_t *) = nullptr;
    int (*Topo_test)(handle, int *) = nullptr;
    int (*Cartdim_get)(handle, int *) = nullptr;
    int (*Cart_shift)(handle, int dimension, int, int *source_p, int *dest_p) = nullptr;
    int (*Graph_neighbors_count)(handle, int rank, int *) = nullptr;
    int (*Graph_neighbors)(handle, int rank, int, int *) = nullptr;
    int (*Dist_graph_neighbors_count)(handle, int *, int *, int *) = nullptr;
    int (*Dist_graph_neighbors)(handle, int, int *, int *weights, int, int *, int *) = nullptr;
    int (*Wait)(int *request, void *status) = nullptr;
    int (*Test)(int *request, int *flag_p, void *status) = nullptr;
    int (*Cancel)(int *request) = nullptr;
    int (*Test_cancelled)(const void *status, int *flag_p) = nullptr;
    int (*Get_count_c)(const void *status, handle type, count_t *) = nullptr;
    int (*Grequest_complete)(handle) = nullptr;
    // MPIX_: a generalized request that MPICH asks, in Test and Wait, whether it has ended.
    int (*Grequest_start)(int (*query)(void *, void *status), int (*release)(void *),
                          int (*cancel)(void *, int complete), int (*poll)(void *, void *status),
                          int (*wait)(int, void **states, double, void *status), void *state,
                          void *request) = nullptr;

    const mpi_library *mpi = nullptr;
};

// Of the MPICH in this process; only to be called from replaced functions.
const pmpi_functions &pmpi() noexcept;

}  // namespace cuda_nc::hooks::local
