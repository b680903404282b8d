// Kernels that are loaded on one device, and how they are launched.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>

namespace cuda_nc::exec {

struct launch_shape {
    unsigned thread_blocks = 0, threads = 0;  // of the grid; of a thread block
    size_t shared = 0;                        // bytes of dynamic shared memory of a thread block
    // The GPU may start the kernel while the one before it on the stream ends.
    bool early = false;
};

// Launches through the driver. The runtime would look up device and kernel at each launch, a third
// of a microsecond of CPU time more (bench/results, launches).
//
// A kernel is loaded when it is first launched: all of them together would take 25 ms of a
// process's first message (bench/results, first messages). Thread safe.
class loaded_kernels {
  public:
    using launch_call = decltype(&::cuLaunchKernelEx);
    explicit loaded_kernels(launch_call call) noexcept : call_(call) {}

    // Loads `kernel`, a __global__ function, on the current device, if it is not there yet. Loading
    // may wait for kernels that run on the device. After a lack of memory kernels are not tried
    // again for some time, which is short at first: two of the tries of a pipe's launch, which are
    // over in 25 ms, come after it.
    cudaError_t load(const void *kernel) noexcept;

    // The device's context is current. Synchronises at a kernel's first launch at most.
    // cudaErrorCudartUnloading: the process is ending.
    cudaError_t launch(const void *kernel, const launch_shape &shape, void **arguments,
                       cudaStream_t stream) noexcept;

    // The context in which they were loaded is gone; nobody launches meanwhile.
    void forget() noexcept;

    size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }

  private:
    using clock = std::chrono::steady_clock;

    // Found without a lock: the key is written last.
    struct place {
        std::atomic<const void *> kernel{nullptr};
        CUfunction function = nullptr;
    };
    // More than twice as many as there are kernels.
    static constexpr size_t num_places = 1024;

    place &place_of(const void *kernel) noexcept;
    cudaError_t load_locked(const void *kernel, place **place_p) noexcept;

    const launch_call call_;
    std::mutex mutex_;
    std::array<place, num_places> places_;
    std::atomic<size_t> size_{0};
    clock::time_point not_before_ = clock::time_point::min();
    clock::duration pause_{};  // of the last lack of memory; 0: there was none since a success
};

}  // namespace cuda_nc::exec
