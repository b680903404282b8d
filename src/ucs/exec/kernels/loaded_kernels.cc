#include "ucs/exec/kernels/loaded_kernels.hpp"

#include <atomic>
#include <new>

namespace cuda_nc::exec {
namespace {

std::atomic<bool> torn_down{false};

// Made after the library's kernels were registered with CUDA, and so destroyed before they are
// unregistered. An application's exit handlers may still launch after that, and the driver would
// not notice that the kernels are gone.
struct end_of_kernels {
    ~end_of_kernels() { torn_down.store(true, std::memory_order_relaxed); }
};

}  // namespace

void loaded_kernels::load(const void *kernel) noexcept {
    static const end_of_kernels end;
    if (error_ == cudaErrorMemoryAllocation) {
        return;  // more tries may take long, and would fail too
    }
    cudaFunction_t function = nullptr;
    cudaFuncAttributes attributes;  // this query loads the kernel
    cudaError_t status = cudaFuncGetAttributes(&attributes, kernel);
    if (status == cudaSuccess) {
        status = cudaGetFuncBySymbol(&function, kernel);
    }
    if (status == cudaSuccess) {
        try {
            all_[kernel] = static_cast<CUfunction>(function);
        } catch (const std::bad_alloc &) {
            status = cudaErrorMemoryAllocation;
        }
    }
    error_ = error_ == cudaSuccess ? status : error_;
}

cudaError_t loaded_kernels::launch(const void *kernel, const launch_shape &shape, void **arguments,
                                   cudaStream_t stream) const noexcept {
    if (torn_down.load(std::memory_order_relaxed)) {
        return cudaErrorCudartUnloading;
    }
    auto found = all_.find(kernel);
    if (found == all_.end()) {
        return cudaErrorInvalidDeviceFunction;
    }
    CUlaunchAttribute attribute = {};
    attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute.value.programmaticStreamSerializationAllowed = 1;
    CUlaunchConfig config = {};
    config.gridDimX = shape.thread_blocks;
    config.blockDimX = shape.threads;
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.sharedMemBytes = static_cast<unsigned>(shape.shared);
    config.hStream = stream;
    config.attrs = &attribute;
    config.numAttrs = shape.early ? 1 : 0;
    // Equal numbers mean equal errors since CUDA 10.1.
    return static_cast<cudaError_t>(call_(&config, found->second, arguments, nullptr));
}

}  // namespace cuda_nc::exec
