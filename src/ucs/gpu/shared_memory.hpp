// Pinned host memory that processes of one user on one machine share: where a GPU cannot reach the
// memory of another. It has no name, and nothing of it stays when its processes end, however.
#pragma once

#include <memory>

#include "ucs/gpu/device.hpp"

namespace cuda_nc::gpu {

// `where` reaches it, and with it every GPU of the process. A peer opens it by the handle, as long
// as the result lives. UCS_ERR_NO_MEMORY, or what device::pin() says.
ucs_status_t make_shared_memory(device &where, size_t size, std::unique_ptr<memory> *memory_p,
                                ipc_handle *handle_p) noexcept;

// UCS_ERR_UNSUPPORTED: the handle, which anyone may have made, is not of such memory, or is of
// another user's or of an ended process.
ucs_status_t open_shared_memory(device &where, const ipc_handle &handle,
                                std::unique_ptr<memory> *memory_p) noexcept;

}  // namespace cuda_nc::gpu
