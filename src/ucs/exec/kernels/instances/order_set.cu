// The kernel of a set of orders: it moves them and leaves.
#include "ucs/exec/kernels/instances/order_set.cuh"

#include "ucs/exec/kernels/instances/end_store.cuh"
#include "ucs/exec/kernels/move/order_moves.hpp"
#include "ucs/exec/kernels/plan/order_set.hpp"

namespace cuda_nc::exec {
namespace {

template <uint32_t Most>
__global__ void __launch_bounds__(set_threads, 1)
    move_set(const __grid_constant__ order_set<Most> set) {
    __shared__ __align__(16) uint32_t line[gpu::order_words];
    const uint32_t which = order_of_block(set, blockIdx.x);
    if (threadIdx.x < gpu::order_words) {
        line[threadIdx.x] = set.words[which][threadIdx.x];
    }
    __syncthreads();
    const uint32_t piece = blockIdx.x - set.first_block[which];
    const order_piece its = piece_of_line(line, piece);
    move_order(line, its.begin, its.end, threadIdx.x, set_threads);
    __syncthreads();
    if (threadIdx.x == 0) {
        store_end(&set.ends[line[order_word::place]].words[piece],
                  gpu::end_word(line[order_word::number], line[order_word::pieces]),
                  is_into_own_memory(line[order_word::header]));
    }
}

}  // namespace

const void *set_kernel(bool of_few) noexcept {
    return of_few ? reinterpret_cast<const void *>(move_set<few_in_set>)
                  : reinterpret_cast<const void *>(move_set<many_in_set>);
}

}  // namespace cuda_nc::exec
