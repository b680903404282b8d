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
    cudaError_t error = cudaSuccess;
    for (unsigned k = 0; k < num_locators; ++k) {
        auto kind = static_cast<locator_kind>(k);
        load_kernel(pipe_windows_kernel(kind), &error);
        for (unsigned log2 = 0; log2 <= 4; ++log2) {
            load_kernel(pipe_words_kernel(kind, log2), &error);
        }
    }
    return error;
}

}  // namespace cuda_nc::exec
