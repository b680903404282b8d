// Open MPI's convertor calls on derived datatypes in host memory, by our host executor: for an Open
// MPI whose own convertor delivers wrong bytes.
//
// The convertor itself holds all that is needed (what it was prepared with, and how many bytes it
// has passed), so we keep nothing from call to call.
#pragma once

#include "hooks/open_mpi/convertor_move.hpp"
#include "hooks/open_mpi/open_mpi.hpp"

namespace cuda_nc::hooks {

// Contract of opal_convertor_pack (unpack), whose result is *status_p. False where the original
// must run instead (the buffer lies in memory that the CPU may not touch, for instance): no byte
// was moved. Packed bytes may lie on a GPU.
bool move_on_host(bool packs, const open_mpi &api, void *convertor, iovec *parts,
                  uint32_t *num_parts_p, size_t *length_p, int32_t *status_p) noexcept;

// Contract of opal_datatype_copy_content_same_ddt, whose result is *status_p. False where the
// original must run instead. Both buffers lie in memory that the CPU may touch, and may overlap.
bool copy_on_host(const open_mpi &api, const void *datatype, size_t count, char *destination,
                  const char *source, int32_t *status_p) noexcept;

}  // namespace cuda_nc::hooks
