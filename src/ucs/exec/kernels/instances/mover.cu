// The kernel of a mover. In the first thread block one more warp (dealer.cuh) reads the ring and
// deals the orders out: a short one goes to one thread block, a long one is cut into pieces for all
// that are idle, or for a share of them where others come with it. The first thread block gets its
// pieces in shared memory, at a barrier, so short orders by themselves go no further; the others
// wait for theirs in GPU memory, where that takes no turn of the bus.
#include "ucs/exec/kernels/instances/mover.cuh"

#include "ucs/exec/kernels/instances/dealer.cuh"
#include "ucs/exec/kernels/instances/end_store.cuh"

namespace cuda_nc::exec {
namespace {

// Waits for the piece whose tag is `tag`, by one warp. False: none came for too long.
__device__ bool await_piece(const mover_arguments &a, uint32_t tag, team_memory *team) {
    const uint32_t lane = threadIdx.x;
    const order_part *box = a.state->boxes[blockIdx.x].parts;
    const uint64_t begun = nanoseconds();
    order_part mine = {};
    for (uint32_t tries = 1;; ++tries) {
        if (lane < gpu::order_parts) {
            mine = load_from_box(box + lane);
        }
        if (__all_sync(all_lanes, lane >= gpu::order_parts || mine.tag == tag) != 0) {
            break;
        }
        if (tries % 64 == 0 && __any_sync(all_lanes, nanoseconds() - begun > a.patience_ns) != 0) {
            if (lane == 0) {
                store_local(&a.state->words[blockIdx.x], block_word(tag - 1, block_gave_up));
            }
            return false;
        }
    }
    if (lane < gpu::order_parts) {
        for (uint32_t i = 0; i < gpu::part_words; ++i) {
            team->words[lane * gpu::part_words + i] = mine.words[i];
        }
    }
    return true;
}

// True: there is a piece, and all threads see it.
__device__ bool next_piece(const mover_arguments &a, uint32_t tag, team_memory *team) {
    if (blockIdx.x == 0) {
        wait_for_dealer();
        return kind_of_order(team->words[order_word::header]) != order_kind::leave;
    }
    if (threadIdx.x < warp_lanes) {
        const bool came = await_piece(a, tag, team);
        __syncwarp();
        if (threadIdx.x == 0) {
            const bool leaves =
                came && kind_of_order(team->words[order_word::header]) == order_kind::leave;
            team->go = came && !leaves;
            if (leaves) {  // the next launch does not take this line for one of its own
                store_local(&a.state->words[blockIdx.x], block_word(tag, a.how.instance));
            }
        }
    }
    team_barrier();
    return team->go != 0;
}

// Ends with a barrier.
__device__ __forceinline__ void move_piece(team_memory *team) {
    const uint32_t *words = team->words;
    move_order(words, words[order_word::begin], words[order_word::end], threadIdx.x, mover_threads);
    team_barrier();
}

__device__ void move_pieces(const mover_arguments &a, uint32_t before, team_memory *team) {
    uint32_t tag = before + 1;
    for (; next_piece(a, tag, team); ++tag) {
        move_piece(team);
        if (threadIdx.x == 0) {
            const uint32_t *words = team->words;
            uint32_t *end =
                &a.shared->ends[words[order_word::place]].words[words[order_word::piece]];
            const uint32_t header = words[order_word::header];
            const uint32_t value =
                gpu::end_word(words[order_word::number], words[order_word::pieces]);
            // The dealer may give the next line: this thread comes for it when the end is told.
            if (blockIdx.x == 0) {
                store_shared(&team->done, tag);
            } else {
                store_local(&a.state->words[blockIdx.x], block_word(tag, a.how.instance));
            }
            store_end(end, value, is_into_own_memory(header));
        }
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        store_local(&a.state->words[0], block_word(tag, a.how.instance));
    }
}

__global__ void __launch_bounds__(mover_threads + warp_lanes, 1)
    mover_loop(const __grid_constant__ mover_arguments a) {
    __shared__ team_memory team;
    const uint32_t before = had_before(load_local(&a.state->words[blockIdx.x]));
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) {
            team.done = before;
        }
        __syncthreads();
        if (threadIdx.x >= mover_threads) {
            return dealer(a, threadIdx.x - mover_threads, &team).run();
        }
    } else if (threadIdx.x >= mover_threads) {
        return;
    } else if (threadIdx.x == 0) {
        store_local(&a.state->words[blockIdx.x], block_word(before, a.how.instance));
    }
    move_pieces(a, before, &team);
}

}  // namespace

const void *mover_kernel() noexcept {
    return reinterpret_cast<const void *>(mover_loop);
}

}  // namespace cuda_nc::exec
