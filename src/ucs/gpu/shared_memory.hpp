// Pinned host memory that processes of one user on one machine share, for GPUs that cannot reach
// each other's memory. It has no name in the file system, and nothing is left over when its
// processes end or are killed.
#pragma once

#include <memory>

#include "ucs/gpu/device.hpp"

namespace cuda_nc::gpu {

// Allocates `size` bytes, in whole pages, pinned by `where` for every GPU of the process. A peer
// can open them by the handle while the result lives. UCS_ERR_NO_MEMORY, or what device::pin()
// returns.
ucs_status_t make_shared_memory(device &where, size_t size, std::unique_ptr<memory> *memory_p,
                                ipc_handle *handle_p) noexcept;

// Pages of this process alone, zero, pinned likewise. They stay mapped while the result lives: when
// the GPU's context goes, too.
ucs_status_t make_lasting_memory(device &where, size_t size,
                                 std::unique_ptr<memory> *memory_p) noexcept;

// Maps and pins shared memory of another process. The handle is not trusted. UCS_ERR_UNSUPPORTED:
// it is of other memory, of another user's process, or of a process that has ended.
ucs_status_t open_shared_memory(device &where, const ipc_handle &handle,
                                std::unique_ptr<memory> *memory_p) noexcept;

}  // namespace cuda_nc::gpu
