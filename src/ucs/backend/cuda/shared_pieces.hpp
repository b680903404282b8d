// Memory that applications make of pieces (cuMemCreate, PyTorch's expandable segments), shared
// between processes by file descriptors, where its maker has asked for such.
#pragma once

#include <memory>

#include "ucs/backend/cuda/context.hpp"
#include "ucs/gpu/device.hpp"

namespace cuda_nc::gpu::cuda {

// Of [base, base + size), whole pieces. Others can open the handle as long as *keeper_p lives, and
// so long the pieces stay allocated. UCS_ERR_UNSUPPORTED: the driver, or the number of pieces.
ucs_status_t share_pieces(primary_context &owner, char *base, size_t size, ipc_handle *handle_p,
                          std::shared_ptr<void> *keeper_p) noexcept;

bool is_of_pieces(const ipc_handle &handle) noexcept;

// Maps them behind each other. UCS_ERR_UNSUPPORTED: they are no longer shared, or not with us.
ucs_status_t open_pieces(primary_context &owner, const ipc_handle &handle,
                         std::unique_ptr<memory> *memory_p) noexcept;

}  // namespace cuda_nc::gpu::cuda
