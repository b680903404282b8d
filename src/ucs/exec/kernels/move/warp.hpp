// Operations of the lanes of a warp together. On the host the lanes run one after the other.
#pragma once

#include "ucs/exec/kernels/move/word.hpp"

namespace cuda_nc::exec {

// The lanes of a warp, in step: each(action) runs action(lane) for all lanes, and then each lane
// sees what the others have written. On the host they run in order.
struct lanes_in_step {
    uint32_t lane = 0;
    template <class Action>
    CUDA_NC_KERNEL void each(Action &&action) const {
#ifdef __CUDA_ARCH__
        action(lane);
        __syncwarp();
#else
        for (uint32_t one = 0; one < warp_lanes; ++one) {
            action(one);
        }
#endif
    }
    // Keeps a value that all lanes have found alike for the next action; on the host, the last
    // lane's.
    template <class Value>
    CUDA_NC_KERNEL static void carry(uint32_t of_lane, const Value &found, Value *kept) {
#ifdef __CUDA_ARCH__
        static_cast<void>(of_lane);
        *kept = found;
#else
        if (of_lane == warp_lanes - 1) {
            *kept = found;
        }
#endif
    }
};

// Exclusive prefix sum: sums[l] becomes the sum of `mine` of all lanes below l. On the host lanes
// call it in order.
CUDA_NC_KERNEL void sum_before(uint32_t mine, uint32_t lane, uint32_t *sums) {
#ifdef __CUDA_ARCH__
    uint32_t sum = mine;
    CUDA_NC_UNROLL
    for (uint32_t step = 1; step < warp_lanes; step *= 2) {
        uint32_t before = __shfl_up_sync(0xffffffffu, sum, step);
        sum += lane >= step ? before : 0;
    }
    sums[lane] = sum - mine;
#else
    if (lane == 0) {
        sums[0] = 0;
    }
    if (lane + 1 < warp_lanes) {
        sums[lane + 1] = sums[lane] + mine;
    }
#endif
}

}  // namespace cuda_nc::exec
