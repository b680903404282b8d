// Says once in a process that MPICH moves messages within this machine by shared memory of its own,
// past UCX and us, where the program uses GPU memory and has ranks beside it.
#pragma once

#include <atomic>

#include "hooks/mpich/pmpi.hpp"
#include "ucs/base/compiler.hpp"

namespace cuda_nc::hooks::local {

// False once it has been said, or is known not to matter.
inline std::atomic<bool> watches_for_bypass{true};

void look_for_bypass(const void *buffer, handle type, count_t count) noexcept;
void say_bypass() noexcept;

// A call of MPI has GPU memory that is not MPICH's to move.
inline void note_gpu_memory() noexcept {
    if (CUDA_NC_UNLIKELY(watches_for_bypass.load(std::memory_order_relaxed))) {
        say_bypass();
    }
}

// A message to another rank, or from there. While this watches it asks where the buffer lies, of
// derived types alone.
inline void note_message(const void *buffer, handle type, count_t count) noexcept {
    if (CUDA_NC_UNLIKELY(watches_for_bypass.load(std::memory_order_relaxed))) {
        look_for_bypass(buffer, type, count);
    }
}

}  // namespace cuda_nc::hooks::local
