// A ring of a few slots in lent memory, for messages that the CPUs clock.
#pragma once

#include "uct/cuda_nc/memory/lent_memory.hpp"

namespace cuda_nc::uct {

struct ring {
    static constexpr unsigned most_slots = 4;

    region memory;
    size_t slot_size = 0;  // bytes, at most
    unsigned num_slots = 0;
    bool on_host = false;

    explicit operator bool() const noexcept { return static_cast<bool>(memory); }
};

// For a message of `bytes`, whose sender's GPU is the same or another; empty where there is no
// memory to lend. In host memory where none on the GPU is left, or where it must be `on_host`.
ring acquire_ring(int device, uint64_t bytes, bool same_gpu, bool on_host) noexcept;

// The same in GPU memory alone, for a sender without GPUs in common.
ring acquire_gpu_ring(int device, uint64_t bytes) noexcept;

}  // namespace cuda_nc::uct
