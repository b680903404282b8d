// Handles by which other processes reach what the user has allocated on our GPUs. Thread safe.
#pragma once

#include <memory>

#include "ucs/gpu/device.hpp"

namespace cuda_nc::uct {

// Of the whole allocation, which may be a span of pieces (gpu::find_span()). False: it is not
// shared, or not known. Making a handle takes longer than all else that a message says of its
// memory, so those of up to 1,024 allocations are kept.
//
// Peers can open a handle of pieces as long as its keeper lives, and so long the pieces stay
// allocated. Up to 256 are kept here, fewer where descriptors run out: they leave when the
// application has unmapped some of their pieces and another such handle is made, and else the least
// recently used first. A registration holds its own: *keeper_p, which may be null, gets it.
bool find_shared_handle(gpu::device &gpu, const gpu::allocation_info &memory,
                        gpu::ipc_handle *handle_p, std::shared_ptr<void> *keeper_p) noexcept;

}  // namespace cuda_nc::uct
