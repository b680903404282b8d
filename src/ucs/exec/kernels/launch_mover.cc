#include "ucs/exec/kernels/launch_mover.hpp"

#include <algorithm>

#include "ucs/exec/kernels/instances/mover.cuh"
#include "ucs/exec/kernels/instances/order_set.cuh"
#include "ucs/exec/kernels/plan/order_set.hpp"

namespace cuda_nc::exec {
namespace {

template <uint32_t Most>
cudaError_t launch_set(loaded_kernels &kernels, gpu::mover_memory *shared,
                       const uint32_t (*words)[gpu::order_words], size_t number, uint64_t first,
                       uint32_t most_blocks, cudaStream_t stream) noexcept {
    order_set<Most> set;
    set.ends = shared->ends;
    plan_set(words, number, first, most_blocks, &set);
    void *all[] = {&set};
    const launch_shape shape = {set.first_block[number], set_threads, 0, false};
    return kernels.launch(set_kernel(Most == few_in_set), shape, all, stream);
}

}  // namespace

cudaError_t launch_mover(loaded_kernels &kernels, const mover_arguments &arguments,
                         cudaStream_t stream) noexcept {
    mover_arguments copied = arguments;
    void *all[] = {&copied};
    const launch_shape shape = {mover_thread_blocks, mover_threads + warp_lanes, 0, false};
    return kernels.launch(mover_kernel(), shape, all, stream);
}

cudaError_t launch_set(loaded_kernels &kernels, gpu::mover_memory *shared,
                       const uint32_t (*words)[gpu::order_words], size_t number, uint64_t first,
                       uint32_t most_blocks, cudaStream_t stream) noexcept {
    const uint32_t blocks = std::min(most_blocks, most_set_blocks);
    return number <= few_in_set
               ? launch_set<few_in_set>(kernels, shared, words, number, first, blocks, stream)
               : launch_set<many_in_set>(kernels, shared, words, number, first, blocks, stream);
}

cudaError_t load_mover(loaded_kernels &to) noexcept {
    cudaError_t status = to.load(mover_kernel());
    for (bool few : {true, false}) {
        status = status == cudaSuccess ? to.load(set_kernel(few)) : status;
    }
    return status;
}

}  // namespace cuda_nc::exec
