#include "ucs/exec/kernels/launch_mover.hpp"

#include "ucs/exec/kernels/instances/mover.cuh"

namespace cuda_nc::exec {

cudaError_t launch_mover(loaded_kernels &kernels, const mover_arguments &arguments,
                         cudaStream_t stream) noexcept {
    mover_arguments copied = arguments;
    void *all[] = {&copied};
    const launch_shape shape = {mover_thread_blocks, mover_threads + warp_lanes, 0, false};
    return kernels.launch(mover_kernel(), shape, all, stream);
}

cudaError_t load_mover(loaded_kernels &to) noexcept {
    return to.load(mover_kernel());
}

}  // namespace cuda_nc::exec
