// Memory of a GPU for this process alone, from a pool of our own: cudaFree waits for every kernel
// of the process on its GPU, the application's too, and a kernel may wait for the very message in
// which we free. What a pool takes back waits for nothing.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <mutex>

#include "ucs/backend/cuda/context.hpp"
#include "ucs/gpu/device.hpp"

namespace cuda_nc::gpu::cuda {

// Of one device; lives as long as the process, for memory may be released by any thread.
class memory_pool {
  public:
    // The context of `owner` must be current, and is always the same one. The caller destroys
    // *memory_p before `owner` and the pool, when no work uses it. UCS_ERR_UNSUPPORTED: this driver
    // or device has no pools.
    ucs_status_t allocate(primary_context &owner, size_t size,
                          std::unique_ptr<memory> *memory_p) noexcept;

  private:
    ucs_status_t make(int ordinal) noexcept;

    std::once_flag once_;
    ucs_status_t made_ = UCS_ERR_UNSUPPORTED;
    cudaMemPool_t pool_ = nullptr;
    cudaStream_t stream_ = nullptr;  // of allocations and releases alone, in their order
};

}  // namespace cuda_nc::gpu::cuda
