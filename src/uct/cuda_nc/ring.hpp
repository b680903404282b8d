// Memory on our GPUs into which other processes' GPUs write messages: rings of a few slots, each
// lent to one message at a time. Allocated when first needed, kept for ever, bounded by half of
// UCX_CUDA_NC_STAGING_SIZE for all GPUs. Thread safe.
#pragma once

#include <memory>

#include "ucs/gpu/device.hpp"

namespace cuda_nc::uct {

struct ring {
    static constexpr unsigned num_slots = 4;

    std::unique_ptr<gpu::memory> memory;
    gpu::ipc_handle handle;
    size_t offset;     // of the ring in the peer's view of the memory
    size_t slot_size;  // bytes, at most
    int device;
};

// Null: the bound is reached, or there is no memory.
ring *take_ring(int device) noexcept;

// Nobody writes there any more.
void give_ring(ring *back) noexcept;

// Somebody may still write there: it is never used again.
void lose_ring(ring *lost) noexcept;

// The peer's allocation as our `device` reaches it, opened once and kept; null where that fails.
gpu::memory *open_peer_memory(int device, const gpu::ipc_handle &handle) noexcept;

size_t rings_lost() noexcept;  // for tests and statistics

}  // namespace cuda_nc::uct
