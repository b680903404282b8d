// Memory of a simulated GPU, shared between processes.
#pragma once

#include <memory>

#include "ucs/gpu/device.hpp"
#include "ucs/backend/sim/address_space.hpp"

namespace cuda_nc::gpu::sim {

// `one` is the allocation to share; it lies in the file `fd`, from `offset` on.
ucs_status_t export_region(const region &one, int fd, uint64_t offset,
                           ipc_handle *handle_p) noexcept;

// The same for pieces of an allocation, which others can open as long as *keeper_p lives.
ucs_status_t share_region(const region &one, int fd, uint64_t offset, ipc_handle *handle_p,
                          std::shared_ptr<void> *keeper_p) noexcept;

// Whether it names pieces of an allocation.
bool is_of_pieces(const ipc_handle &handle) noexcept;

// Maps the allocation of another process and enters it into `space`.
// UCS_ERR_UNSUPPORTED: the handle is of this process, or no handle of this version.
// UCS_ERR_IO_ERROR: the process is gone, of another user, or not what the handle says.
ucs_status_t open_region(const ipc_handle &handle, address_space &space,
                         std::unique_ptr<memory> *memory_p) noexcept;

}  // namespace cuda_nc::gpu::sim
