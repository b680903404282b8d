// Kernels that are loaded on one device, and how they are launched.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <unordered_map>

namespace cuda_nc::exec {

struct launch_shape {
    unsigned thread_blocks = 0, threads = 0;  // of the grid; of a thread block
    size_t shared = 0;                        // bytes of dynamic shared memory of a thread block
    // The GPU may start the kernel while the one before it on the stream ends.
    bool early = false;
};

// Launches through the driver. The runtime would look up device and kernel at each launch, a third
// of a microsecond of CPU time more (bench/results, launches).
class loaded_kernels {
  public:
    using launch_call = decltype(&::cuLaunchKernelEx);
    explicit loaded_kernels(launch_call call) noexcept : call_(call) {}

    // Loads `kernel`, a __global__ function, on the current device; lazy loading would do it at the
    // first launch and could synchronise. error() keeps the first failure since begin(). After a
    // lack of memory the kernels that follow are not tried, after other failures they are.
    void begin() noexcept { error_ = cudaSuccess; }
    void load(const void *kernel) noexcept;
    cudaError_t error() const noexcept { return error_; }

    // Thread safe, but not while kernels are being loaded. The device's context is current. Never
    // synchronises. cudaErrorCudartUnloading: the process is ending.
    cudaError_t launch(const void *kernel, const launch_shape &shape, void **arguments,
                       cudaStream_t stream) const noexcept;

  private:
    const launch_call call_;
    std::unordered_map<const void *, CUfunction> all_;
    cudaError_t error_ = cudaSuccess;
};

}  // namespace cuda_nc::exec
