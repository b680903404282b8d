// platform::watch_ipc_conflicts() for CUDA.
#pragma once

#include "ucs/backend/cuda/driver.hpp"

namespace cuda_nc::gpu::cuda {

bool watch_ipc_conflicts(const driver &calls, void (*release)() noexcept) noexcept;

}  // namespace cuda_nc::gpu::cuda
