// Lists our settings among UCX's own: `ucx_info -c -f` shows them, and UCX does not warn that
// UCX_CUDA_NC_... is unused.
#pragma once

#include "ucs/base/ucx_instance.hpp"

namespace cuda_nc::hooks {

// Call it before the first worker of this UCX is made: UCX looks for unused settings then. Does
// nothing the second time for the same UCX, and for one older than 1.13. Thread safe.
void register_settings(const ucx_instance &ucx) noexcept;

}  // namespace cuda_nc::hooks
