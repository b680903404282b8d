// Our settings among UCX's own: `ucx_info -c -f` lists them, and UCX does not warn that
// UCX_CUDA_NC_... is unused.
#pragma once

namespace cuda_nc::hooks {

// Idempotent. UCX warns when the first worker is made, so that is the latest useful time. Does
// nothing where no UCX from 1.13 on is loaded.
void register_settings() noexcept;

}  // namespace cuda_nc::hooks
