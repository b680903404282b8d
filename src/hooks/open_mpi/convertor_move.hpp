// Packing and unpacking where the convertor's buffer, or the packed bytes, lie in GPU memory.
#pragma once

#include "hooks/open_mpi/convertor_tracker.hpp"
#include "hooks/open_mpi/open_mpi.hpp"

namespace cuda_nc::hooks {

// The layout of `count` elements; null where we do not understand the datatype. It is read once
// where the library tells of the datatype's end.
layout_ref make_layout(const open_mpi &api, const void *datatype, size_t count) noexcept;

// Contract of opal_convertor_pack (unpack) for a tracked convertor: moves as many bytes as the
// parts hold, and returns 1 when the message is complete, 0 where more is to come, -1 on an error,
// which is logged. Unpacked bytes are in the user's memory on return.
int32_t move_tracked(bool packs, const open_mpi &api, void *convertor, tracked_convertor &entry,
                     iovec *parts, uint32_t *num_parts_p, size_t *length_p) noexcept;

// Calls `original` where packed bytes lie in GPU memory, which it cannot touch: through a bounce
// buffer in host memory. Same results as above.
int32_t move_by_host(bool packs, move_f original, void *convertor, iovec *parts,
                     uint32_t *num_parts_p, size_t *length_p) noexcept;

}  // namespace cuda_nc::hooks
