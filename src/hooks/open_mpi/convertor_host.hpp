// Open MPI's convertor calls on derived datatypes in host memory, by our engine: for an Open MPI
// whose own convertor delivers wrong bytes.
//
// All that is needed stands in the convertor itself (what it was prepared with, and how far it has
// come), so nothing is remembered from call to call.
#pragma once

#include "hooks/open_mpi/convertor_move.hpp"
#include "hooks/open_mpi/open_mpi.hpp"

namespace cuda_nc::hooks {

// As opal_convertor_pack (unpack), but false where the original must run: nothing has been moved.
// So it is where the convertor's buffer lies in memory that the CPU may not touch. Packed bytes may
// lie on a GPU.
bool move_on_host(bool packs, const open_mpi &api, void *convertor, iovec *parts,
                  uint32_t *num_parts_p, size_t *length_p, int32_t *status_p) noexcept;

// As opal_datatype_copy_content_same_ddt; both buffers lie in memory that the CPU may touch, and
// may overlap.
bool copy_on_host(const open_mpi &api, const void *datatype, size_t count, char *destination,
                  const char *source, int32_t *status_p) noexcept;

}  // namespace cuda_nc::hooks
