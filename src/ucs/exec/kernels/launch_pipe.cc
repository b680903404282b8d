#include "ucs/exec/kernels/launch.hpp"
#include "ucs/exec/kernels/pipe.cuh"

namespace cuda_nc::exec {
namespace {

const void *kernel_of(const kernel_choice &mover) {
    switch (mover.how) {
        case method::units:
            return pipe_units_kernel(mover.word_log2);
        case method::windows:
            return pipe_windows_kernel(mover.locator);
        default:
            return pipe_words_kernel(mover.locator, mover.word_log2);
    }
}

// Null: the other kernel serves it as well.
const void *kernel_of_lone_pull(const pipe_plan &plan) {
    const pipe_arguments &first = plan.batch.entries[0];
    if (!first.pulls || plan.batch.num_entries != first.num_parts || first.num_parts > 2 ||
        (first.what.dir == gpu::direction::copy && first.num_parts != 1)) {
        return nullptr;
    }
    const kernel_choice &mover = plan.mover;
    return mover.how == method::units   ? pull_units_kernel(mover.word_log2)
           : mover.how == method::words ? pull_words_kernel(mover.locator, mover.word_log2)
                                        : nullptr;
}

cudaError_t launch(const void *kernel, const void *argument, const pipe_plan &plan,
                   cudaStream_t stream) {
    void *arguments[] = {const_cast<void *>(argument)};
    return cudaLaunchKernel(kernel, dim3(plan.num_blocks), dim3(pipe_threads), arguments,
                            plan.slot_size, stream);
}

}  // namespace

cudaError_t launch_pipes(const gpu::pipe_work *sides, size_t number, cudaStream_t stream,
                         size_t *launched_p) noexcept {
    static thread_local pipe_plan plan;  // its 2 KB are not cleared each time
    plan.num_blocks = plan.slot_size = plan.batch.num_entries = 0;
    size_t added = 0;
    while (added < number && add_pipe(sides[added], &plan)) {
        ++added;
    }
    *launched_p = added;
    if (added == 0) {
        return cudaErrorNotSupported;
    }
    cudaError_t error;
    if (const void *kernel = kernel_of_lone_pull(plan)) {
        const lone_pull pull = {{plan.batch.entries[0], plan.batch.entries[1]}};
        error = launch(kernel, &pull, plan, stream);
    } else {
        error = launch(kernel_of(plan.mover), &plan.batch, plan, stream);
    }
    if (error != cudaSuccess) {
        cudaGetLastError();  // not left behind for the application to find
    }
    return error;
}

cudaError_t load_pipe_kernels() noexcept {
    cudaError_t error = cudaSuccess;
    for (unsigned log2 = 0; log2 <= 4; ++log2) {
        load_kernel(pipe_units_kernel(log2), &error);
        load_kernel(pull_units_kernel(log2), &error);
    }
    for (unsigned k = 0; k < num_locators; ++k) {
        auto kind = static_cast<locator_kind>(k);
        if (kind == locator_kind::varying) {
            continue;  // units
        }
        load_kernel(pipe_windows_kernel(kind), &error);
        for (unsigned log2 = 0; log2 <= 4; ++log2) {
            load_kernel(pipe_words_kernel(kind, log2), &error);
            if (const void *kernel = pull_words_kernel(kind, log2)) {
                load_kernel(kernel, &error);
            }
        }
    }
    return error;
}

}  // namespace cuda_nc::exec
