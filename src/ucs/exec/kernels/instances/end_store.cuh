// How a kernel tells the CPU that it has stored all bytes (gpu/device.hpp: end_words).
#pragma once

#include <cstdint>

namespace cuda_nc::exec {

#ifdef __CUDACC__
// One thread calls it, behind a barrier of all that have stored. `word` lies in pinned memory.
// `into_own_memory`: all that they stored lies in this GPU's memory.
__device__ __forceinline__ void store_end(uint32_t *word, uint32_t value, bool into_own_memory) {
    if (into_own_memory) {
        asm volatile("fence.acq_rel.gpu; st.relaxed.sys.global.u32 [%0], %1;" ::"l"(word),
                     "r"(value)
                     : "memory");
    } else {
        asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
    }
}
__device__ __forceinline__ void store_end(uint16_t *word, uint16_t value, bool into_own_memory) {
    if (into_own_memory) {
        asm volatile("fence.acq_rel.gpu; st.relaxed.sys.global.u16 [%0], %1;" ::"l"(word),
                     "h"(value)
                     : "memory");
    } else {
        asm volatile("st.release.sys.global.u16 [%0], %1;" ::"l"(word), "h"(value) : "memory");
    }
}
#endif

}  // namespace cuda_nc::exec
