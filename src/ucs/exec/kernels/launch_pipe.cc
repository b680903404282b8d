#include "ucs/exec/kernels/launch.hpp"
#include "ucs/exec/kernels/pipe.cuh"

namespace cuda_nc::exec {
namespace {

const void *kernel_of(const kernel_choice &mover) {
    return mover.how == method::windows ? pipe_windows_kernel(mover.locator)
                                        : pipe_words_kernel(mover.locator, mover.word_log2);
}

}  // namespace

cudaError_t launch_pipes(const gpu::pipe_work *sides, size_t number, cudaStream_t stream,
                         size_t *launched_p) noexcept {
    pipe_plan plan;
    size_t added = 0;
    while (added < number && add_pipe(sides[added], &plan)) {
        ++added;
    }
    *launched_p = added;
    if (added == 0) {
        return cudaErrorNotSupported;
    }
    void *arguments[] = {&plan.batch};
    cudaError_t error = cudaLaunchKernel(kernel_of(plan.mover), dim3(plan.num_blocks),
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
