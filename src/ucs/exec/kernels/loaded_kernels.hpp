// Kernels that are loaded on one device, and their launch.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <unordered_map>

namespace cuda_nc::exec {

struct launch_shape {
    unsigned blocks = 0, threads = 0;  // of the grid, of a block
    size_t shared = 0;                 // bytes beside those that the kernel declares, of a block
    // The GPU may start it while the kernel before it on the stream ends.
    bool early = false;
};

// Launches by the driver: for each launch the runtime looks up the device and its kernel first,
// which takes the CPU a third of a microsecond more (bench/results, launches).
class loaded_kernels {
  public:
    using launch_call = decltype(&::cuLaunchKernelEx);
    explicit loaded_kernels(launch_call call) noexcept : call_(call) {}

    // Loads `kernel`, a __global__ function, on the current device; lazy loading could synchronise
    // later. error() keeps the first failure since begin(), after which the others may be tried;
    // where that is a lack of memory they are not.
    void begin() noexcept { error_ = cudaSuccess; }
    void load(const void *kernel) noexcept;
    cudaError_t error() const noexcept { return error_; }

    // With that device's context current and nothing being loaded; thread safe. Never synchronises.
    // cudaErrorCudartUnloading: the process ends.
    cudaError_t launch(const void *kernel, const launch_shape &shape, void **arguments,
                       cudaStream_t stream) const noexcept;

  private:
    const launch_call call_;
    std::unordered_map<const void *, CUfunction> all_;
    cudaError_t error_ = cudaSuccess;
};

}  // namespace cuda_nc::exec
