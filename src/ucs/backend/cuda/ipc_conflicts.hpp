// platform::watch_ipc_conflicts() for CUDA. Libraries that were loaded since the last call are
// included from this one on.
#pragma once

#include "ucs/backend/cuda/driver.hpp"

namespace cuda_nc::gpu::cuda {

bool watch_ipc_conflicts(const driver &calls, void (*release)() noexcept) noexcept;

}  // namespace cuda_nc::gpu::cuda
