#include "ucs/exec/kernels/instances/kernels.cuh"

namespace cuda_nc::exec {
namespace {

template <bool Shared, class Work>
__global__ void __launch_bounds__(max_thread_block_size, 1)
    move_pairs_kernel(const __grid_constant__ Work work, end_mark end) {
    extern __shared__ pair_table tables[];
    const thread_place at = here();
    pairs_warp<Shared>(work, at, tables + at.thread / warp_lanes,
                       lanes_in_step{at.thread % warp_lanes});
    tell_end(end);
}

template <class Work>
const void *kernel_of(bool shared) noexcept {
    return shared ? reinterpret_cast<const void *>(move_pairs_kernel<true, Work>)
                  : reinterpret_cast<const void *>(move_pairs_kernel<false, Work>);
}

}  // namespace

const void *pairs_kernel(bool shared) noexcept {
    return kernel_of<pair_work>(shared);
}
const void *layout_pairs_kernel(bool shared) noexcept {
    return kernel_of<layout_pair_work>(shared);
}

}  // namespace cuda_nc::exec
