#include "ucs/exec/kernels/launch.hpp"
#include "ucs/exec/kernels/instances/pipe.cuh"

namespace cuda_nc::exec {
namespace {

const void *kernel_of(const kernel_choice &mover) {
    switch (mover.how) {
        case method::units:
            return pipe_units_kernel(mover.word_log2);
        case method::blocks:
            return pipe_blocks_kernel(mover.word_log2);
        case method::windows:
            return pipe_windows_kernel(mover.locator);
        default:
            return pipe_words_kernel(mover.locator, mover.word_log2);
    }
}

// The kernel for a pull that is alone in its launch. Null: there is none; kernel_of() serves it as
// well.
const void *kernel_of_lone_pull(const pipe_plan &plan, bool wide) {
    const pipe_arguments &first = plan.batch.entries[0];
    if (!first.pulls || plan.batch.num_entries != first.num_parts || first.num_parts > 2 ||
        (first.what.dir == gpu::direction::copy && first.num_parts != 1)) {
        return nullptr;
    }
    const kernel_choice &mover = plan.mover;
    switch (mover.how) {
        case method::units:
            return pull_units_kernel(mover.word_log2, wide);
        case method::blocks:
            return pull_blocks_kernel(mover.word_log2);
        case method::words:
            return pull_words_kernel(mover.locator, mover.word_log2);
        default:
            return nullptr;
    }
}

// Whether a pull gets twice the threads: for long chunks of a list, where one message has most of
// the GPU.
bool is_wide(const pipe_plan &plan) {
    const pipe_arguments &first = plan.batch.entries[0];
    return plan.mover.how == method::units && first.geometry.channels >= gpu::many_pipe_channels &&
           first.geometry.chunk_size >= wide_pull_chunk;
}

}  // namespace

cudaError_t launch_pipes(loaded_kernels &kernels, const gpu::pipe_work *sides, size_t number,
                         const kernel_limits &limits, cudaStream_t stream,
                         size_t *launched_p) noexcept {
    static thread_local pipe_plan plan;  // its 2 KB are not cleared each time
    plan.num_thread_blocks = plan.slot_size = plan.batch.num_entries = 0;
    size_t added = 0;
    while (added < number && add_pipe(sides[added], &plan)) {
        ++added;
    }
    *launched_p = added;
    if (added == 0) {
        return cudaErrorNotSupported;
    }
    for (uint32_t i = 0; i < plan.batch.num_entries; ++i) {
        plan.batch.entries[i].into_own_memory &= !limits.host_caches_memory;
    }
    launch_shape shape = {plan.num_thread_blocks, pipe_threads, plan.slot_size, false};
    const bool wide = is_wide(plan);
    short_pull short_one;
    if (added == 1 && !wide && make_short_pull(sides[0], plan, &short_one)) {
        void *arguments[] = {&short_one};
        return kernels.launch(pull_short_list_kernel(short_one.word_log2), shape, arguments,
                              stream);
    }
    if (const void *kernel = kernel_of_lone_pull(plan, wide)) {
        shape.threads = wide ? wide_pull_threads : pipe_threads;
        lone_pull pull = {{plan.batch.entries[0], plan.batch.entries[1]}};
        void *arguments[] = {&pull};
        return kernels.launch(kernel, shape, arguments, stream);
    }
    void *arguments[] = {&plan.batch};
    return kernels.launch(kernel_of(plan.mover), shape, arguments, stream);
}

}  // namespace cuda_nc::exec
