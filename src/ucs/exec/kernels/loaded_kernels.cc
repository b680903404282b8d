#include "ucs/exec/kernels/loaded_kernels.hpp"

#include <algorithm>
#include <cstdint>

#include "ucs/base/compiler.hpp"
#include "ucs/base/trace.hpp"

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

// That of `kernel`, or an empty one where it can be put.
loaded_kernels::place &loaded_kernels::place_of(const void *kernel) noexcept {
    const auto number = reinterpret_cast<uintptr_t>(kernel);
    for (size_t i = (number >> 4) * 0x9E3779B97F4A7C15ull >> 54;; ++i) {
        place &one = places_[i % num_places];
        const void *there = one.kernel.load(std::memory_order_acquire);
        if (there == kernel || there == nullptr) {
            return one;
        }
    }
}

cudaError_t loaded_kernels::load_locked(const void *kernel, place **place_p) noexcept {
    static const end_of_kernels end;
    constexpr auto first_pause = std::chrono::milliseconds(5), longest_pause = 16 * first_pause;
    std::lock_guard<std::mutex> guard(mutex_);
    *place_p = &place_of(kernel);
    if ((*place_p)->kernel.load(std::memory_order_relaxed) == kernel) {
        return cudaSuccess;
    }
    if (clock::now() < not_before_) {
        return cudaErrorMemoryAllocation;  // another try may take long, and would fail too
    }
    const trace_span span("load a kernel");
    cudaFunction_t function = nullptr;
    cudaFuncAttributes attributes;  // this query loads the kernel
    cudaError_t status = cudaFuncGetAttributes(&attributes, kernel);
    if (status == cudaSuccess) {
        status = cudaGetFuncBySymbol(&function, kernel);
    }
    if (status == cudaErrorMemoryAllocation) {
        pause_ = std::clamp<clock::duration>(2 * pause_, first_pause, longest_pause);
        not_before_ = clock::now() + pause_;
    }
    if (status == cudaSuccess) {
        pause_ = {};
        (*place_p)->function = static_cast<CUfunction>(function);
        (*place_p)->kernel.store(kernel, std::memory_order_release);
        size_.fetch_add(1, std::memory_order_relaxed);
    }
    return status;
}

cudaError_t loaded_kernels::load(const void *kernel) noexcept {
    place *at;
    return load_locked(kernel, &at);
}

void loaded_kernels::forget() noexcept {
    std::lock_guard<std::mutex> guard(mutex_);
    for (place &one : places_) {
        one.kernel.store(nullptr, std::memory_order_relaxed);
    }
    size_.store(0, std::memory_order_relaxed);
}

cudaError_t loaded_kernels::launch(const void *kernel, const launch_shape &shape, void **arguments,
                                   cudaStream_t stream) noexcept {
    if (torn_down.load(std::memory_order_relaxed)) {
        return cudaErrorCudartUnloading;
    }
    place *found = &place_of(kernel);
    if (CUDA_NC_UNLIKELY(found->kernel.load(std::memory_order_acquire) != kernel)) {
        const cudaError_t status = load_locked(kernel, &found);
        if (status != cudaSuccess) {
            return status;
        }
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
    return static_cast<cudaError_t>(call_(&config, found->function, arguments, nullptr));
}

}  // namespace cuda_nc::exec
