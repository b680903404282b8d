// Other processes' GPU memory, as our GPUs reach it. Thread safe.
#pragma once

#include "ucs/gpu/device.hpp"

namespace cuda_nc::uct {

// The peer's allocation as our `device` reaches it, opened once and kept; null where that fails.
gpu::memory *open_peer_memory(int device, const gpu::ipc_handle &handle) noexcept;

// Bytes [offset, offset + length) of such an allocation; null where it has not got them, aligned to
// `alignment`, or cannot be opened.
char *reach_peer_memory(int device, const gpu::ipc_handle &handle, uint64_t offset, uint64_t length,
                        size_t alignment) noexcept;

}  // namespace cuda_nc::uct
