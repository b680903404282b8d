// CUDA's errors as statuses.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "ucs/base/status.hpp"

namespace cuda_nc::gpu::cuda {

// UCS_OK, UCS_INPROGRESS (not ready), UCS_ERR_NO_MEMORY, UCS_ERR_UNSUPPORTED or UCS_ERR_IO_ERROR.
// Clears the runtime's last error. Logs what is neither a lack of memory nor a normal answer; an
// error after which the GPU serves this process no more is logged once. `call` names the function.
ucs_status_t to_status(cudaError_t result, const char *call) noexcept;
ucs_status_t to_status(CUresult result, const char *call) noexcept;

// True where CUDA has already been torn down, which happens at exit: nothing is left to release.
bool torn_down(cudaError_t result) noexcept;
bool torn_down(CUresult result) noexcept;

}  // namespace cuda_nc::gpu::cuda
