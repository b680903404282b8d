// The CUDA driver's entry points, found at run time: the program starts without a driver, too.
#pragma once

#include <cuda.h>
#include <dlfcn.h>

#include <chrono>
#include <stdexcept>
#include <string>

#include "support/memory.hpp"

#define CUDA_NC_TEXT_(name) #name
#define CUDA_NC_TEXT(name) CUDA_NC_TEXT_(name)
// The name that cuda.h gives the function, such as cuMemAlloc_v2.
#define DRIVER_FUNCTION(name) gpu_test::find_function<decltype(&::name)>(CUDA_NC_TEXT(name))

namespace gpu_test {

using mpi_test::memory;

// A case that this machine cannot run: it ends with exit status 77.
struct skipped : std::runtime_error {
    using std::runtime_error::runtime_error;
};

template <typename function>
function find_function(const char *name) {
    static void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    void *found = driver != nullptr ? dlsym(driver, name) : nullptr;
    if (found == nullptr) {
        throw skipped(std::string("the driver lacks ") + name);
    }
    return reinterpret_cast<function>(found);
}

// Throws where the driver reports a failure.
inline void check(CUresult result, const char *what) {
    if (result != CUDA_SUCCESS) {
        throw std::runtime_error(std::string(what) + " failed: " + std::to_string(result));
    }
}
#define DRIVER_CALL(name, ...) gpu_test::check(DRIVER_FUNCTION(name)(__VA_ARGS__), #name)

// Makes the primary context of GPU `rank` modulo their number current. Returns the GPU.
inline CUdevice enter_gpu(int rank) {
    DRIVER_CALL(cuInit, 0);
    int number = 0;
    DRIVER_CALL(cuDeviceGetCount, &number);
    if (number == 0) {
        throw skipped("no GPU");
    }
    CUdevice device;
    CUcontext context;
    DRIVER_CALL(cuDeviceGet, &device, rank % number);
    DRIVER_CALL(cuDevicePrimaryCtxRetain, &context, device);
    DRIVER_CALL(cuCtxSetCurrent, context);
    return device;
}

// Kernels on all multiprocessors, each for so long: one after the other on a stream of their own,
// or on another one.
class computation {
  public:
    computation();  // in the current context
    void launch(std::chrono::nanoseconds length) { launch(length, stream_); }
    void launch(std::chrono::nanoseconds length, CUstream stream);

  private:
    CUfunction kernel_;
    CUstream stream_;
};

// A kernel of one thread: `spin` runs for about so many milliseconds, `trap` loses the context.
void launch_spin(unsigned milliseconds);
void launch_trap();

}  // namespace gpu_test
