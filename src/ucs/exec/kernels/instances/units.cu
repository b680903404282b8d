#include "ucs/exec/kernels/instances/kernels.cuh"

namespace cuda_nc::exec {
namespace {

template <bool Packing, int Align>
__global__ void __launch_bounds__(max_thread_block_size, 1)
    move_units_kernel(const __grid_constant__ part a, end_mark end, uint32_t unit_log2) {
    extern __shared__ unit_table tables[];
    const thread_place at = here();
    units_warp<Packing, Align>(a, unit_log2, at, tables + at.thread / warp_lanes,
                               lanes_in_step{at.thread % warp_lanes});
    tell_end(end);
}

// More threads with fewer registers: a unit's reads wait for each other.
template <int W>
__global__ void __launch_bounds__(word_unit_threads, 2)
    move_word_units_kernel(const __grid_constant__ part a, end_mark end, uint32_t unit_log2) {
    extern __shared__ unit_table tables[];
    const thread_place at = here();
    word_units_warp<W>(a, unit_log2, at, tables + at.thread / warp_lanes,
                       lanes_in_step{at.thread % warp_lanes});
    tell_end(end);
}

}  // namespace

const void *units_kernel(bool packing, unsigned align_log2) noexcept {
    return with_unit_kind(packing, align_log2, [](auto pack, auto align, auto width) {
        if constexpr (decltype(width)::value != 0) {
            return reinterpret_cast<const void *>(move_word_units_kernel<decltype(width)::value>);
        } else {
            return reinterpret_cast<const void *>(
                move_units_kernel<decltype(pack)::value, decltype(align)::value>);
        }
    });
}

}  // namespace cuda_nc::exec
