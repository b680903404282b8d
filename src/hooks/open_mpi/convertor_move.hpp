// Packing and unpacking of remembered convertors, and of buffers on a GPU that hold packed bytes.
#pragma once

#include "hooks/open_mpi/convertor_tracker.hpp"
#include "hooks/open_mpi/open_mpi.hpp"

namespace cuda_nc::hooks {

using move_f = int32_t (*)(void *, iovec *, uint32_t *, size_t *);

// `count` elements; null where the datatype is not understood.
layout_ref make_layout(const open_mpi &api, const void *datatype, size_t count) noexcept;

// As opal_convertor_pack (unpack): moves as much as the parts hold, and returns 1 when the message
// is complete, 0 where more is to come, -1 on an error, which is logged.
int32_t move_tracked(bool packs, const open_mpi &api, void *convertor, tracked_convertor &entry,
                     iovec *parts, uint32_t *num_parts_p, size_t *length_p) noexcept;

// The original call where packed bytes lie in GPU memory: by way of a host buffer.
int32_t move_by_host(bool packs, move_f original, void *convertor, iovec *parts,
                     uint32_t *num_parts_p, size_t *length_p) noexcept;

}  // namespace cuda_nc::hooks
