#include "ucs/exec/kernels/kernels.cuh"

namespace cuda_nc::exec {
namespace {

template <bool Packing, int Align>
__global__ void __launch_bounds__(max_block_threads, 1)
    move_units_kernel(const __grid_constant__ part a, uint32_t unit_log2) {
    extern __shared__ unit_table tables[];
    const thread_place at = here();
    units_warp<Packing, Align>(a, unit_log2, at, tables + at.thread / warp_lanes,
                               lanes_in_step{at.thread % warp_lanes});
}

template <bool Packing>
const void *kernel_of(unsigned align_log2) {
    return align_log2 >= 3 ? reinterpret_cast<const void *>(move_units_kernel<Packing, 8>)
                           : reinterpret_cast<const void *>(move_units_kernel<Packing, 1>);
}

}  // namespace

const void *units_kernel(bool packing, unsigned align_log2) noexcept {
    return packing ? kernel_of<true>(align_log2) : kernel_of<false>(align_log2);
}

}  // namespace cuda_nc::exec
