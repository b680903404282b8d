#include "ucs/exec/kernels/launch.hpp"
#include "ucs/exec/kernels/pipe.cuh"

namespace cuda_nc::exec {
namespace {

const void *kernel_of(const kernel_choice &mover) {
    return mover.how == method::windows ? pipe_windows_kernel(mover.locator)
                                        : pipe_words_kernel(mover.locator, mover.word_log2);
}

}  // namespace

cudaError_t launch_pipe(const gpu::pipe_work &work, cudaStream_t stream) noexcept {
    pipe_plan plan;
    if (!plan_pipe(work, &plan)) {
        return cudaErrorNotSupported;
    }
    void *arguments[] = {&plan.arguments};
    cudaError_t error = cudaLaunchKernel(kernel_of(plan.mover), dim3(work.geometry.lanes),
                                         dim3(pipe_threads), arguments, 0, stream);
    if (error != cudaSuccess) {
        cudaGetLastError();  // not left behind for the application to find
    }
    return error;
}

cudaError_t load_pipe_kernels() noexcept {
    cudaFuncAttributes attributes;
    cudaError_t error = cudaSuccess;
    auto load = [&](const void *kernel) {
        cudaError_t status = cudaFuncGetAttributes(&attributes, kernel);
        error = error == cudaSuccess ? status : error;
    };
    for (unsigned k = 0; k < num_locators; ++k) {
        auto kind = static_cast<locator_kind>(k);
        load(pipe_windows_kernel(kind));
        for (unsigned log2 = 0; log2 <= 4; ++log2) {
            load(pipe_words_kernel(kind, log2));
        }
    }
    return error;
}

}  // namespace cuda_nc::exec
