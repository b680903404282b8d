// A datatype's blocks by the calls that made it: for types whose blocks MPICH itself lists wrongly.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ucs/layout/layout.hpp"

namespace cuda_nc::hooks {

// MPIX_Iov: displacement from the buffer, and bytes.
struct type_block {
    intptr_t displacement;
    intptr_t length;
};

// MPICH's functions, with its integer handles.
struct type_functions {
    // Those that also know types which MPI's functions of large counts made; MPICH itself makes
    // such types in collectives.
    int (*get_envelope)(int type, long long *integers_p, long long *addresses_p,
                        long long *counts_p, long long *types_p, int *combiner_p) = nullptr;
    int (*get_contents)(int type, long long integers, long long addresses, long long counts,
                        long long types, int *, intptr_t *, long long *, int *) = nullptr;
    int (*get_extent)(int type, intptr_t *lower_bound_p, intptr_t *extent_p) = nullptr;
    int (*get_size)(int type, int *size_p) = nullptr;
    int (*free)(int *type_p) = nullptr;
    // Of a predefined type; `blocks` has room for so many.
    int (*get_blocks)(int type, intptr_t first, type_block *blocks, intptr_t room,
                      intptr_t *num_blocks_p) = nullptr;
};

// One element of `type`, in type-map order. Null: a combiner that is not known, a type of more than
// 2^24 blocks that do not touch or of more bytes than 64 bits tell, or MPICH reports an error.
// Throws std::bad_alloc.
layout_ref read_contents(const type_functions &mpi, int type);

}  // namespace cuda_nc::hooks
