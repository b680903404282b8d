// The GPU's clock, the same on all of its multiprocessors.
#pragma once

#include <cstdint>

namespace cuda_nc::exec {

#ifdef __CUDACC__
__device__ __forceinline__ uint64_t nanoseconds() {
    uint64_t value;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value));
    return value;
}
#endif

}  // namespace cuda_nc::exec
