#include "ucs/exec/kernels/instances/kernels.cuh"

namespace cuda_nc::exec {
namespace {

template <bool Shared>
__global__ void __launch_bounds__(max_thread_block_size, 1)
    move_pairs_kernel(const pair_work work, end_mark end) {
    extern __shared__ pair_table tables[];
    const thread_place at = here();
    pairs_warp<Shared>(work, at, tables + at.thread / warp_lanes,
                       lanes_in_step{at.thread % warp_lanes});
    tell_end(end);
}

}  // namespace

const void *pairs_kernel(bool shared) noexcept {
    return shared ? reinterpret_cast<const void *>(move_pairs_kernel<true>)
                  : reinterpret_cast<const void *>(move_pairs_kernel<false>);
}

}  // namespace cuda_nc::exec
