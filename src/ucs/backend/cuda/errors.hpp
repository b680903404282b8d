// Converts CUDA's errors to UCX's status codes.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "ucs/base/status.hpp"

namespace cuda_nc::gpu::cuda {

// UCS_OK, UCS_INPROGRESS (not ready), UCS_ERR_NO_MEMORY, UCS_ERR_UNSUPPORTED or UCS_ERR_IO_ERROR.
// Clears the runtime's last error. Logs errors other than a lack of memory and expected answers; an
// error after which this process cannot use the GPU is logged once. `call` names the function.
ucs_status_t to_status(cudaError_t result, const char *call) noexcept;
ucs_status_t to_status(CUresult result, const char *call) noexcept;

// True: CUDA has already shut down, as it does at exit; nothing is left to release.
bool torn_down(cudaError_t result) noexcept;
bool torn_down(CUresult result) noexcept;

}  // namespace cuda_nc::gpu::cuda
