// Lists our settings among UCX's own: `ucx_info -c -f` shows them, and UCX does not warn that
// UCX_CUDA_NC_... is unused.
#pragma once

namespace cuda_nc::hooks {

// Call it before the first worker is made: UCX looks for unused settings then. Does nothing the
// second time, and where no UCX from 1.13 on is loaded. Thread safe.
void register_settings() noexcept;

}  // namespace cuda_nc::hooks
