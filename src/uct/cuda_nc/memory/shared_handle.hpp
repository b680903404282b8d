// Handles by which other processes reach what the user has allocated on our GPUs. Thread safe.
#pragma once

#include "ucs/gpu/device.hpp"

namespace cuda_nc::uct {

// Of the whole allocation, which may be a span of pieces (gpu::find_span()). False: it is not
// shared, or not known. Making a handle takes longer than all else that a message says of its
// memory, so those of up to 1,024 allocations are kept. Of these up to 64 may be made of pieces,
// which stay allocated meanwhile: they leave when the application has unmapped their first piece
// and another such handle is made, and else the least recently used first.
bool find_shared_handle(gpu::device &gpu, const gpu::allocation_info &memory,
                        gpu::ipc_handle *handle_p) noexcept;

}  // namespace cuda_nc::uct
