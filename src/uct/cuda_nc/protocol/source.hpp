// A sender's user memory, for a receiver whose GPU takes the bytes from there itself: what the
// sender says of it, and what the receiver makes of that. Thread safe.
#pragma once

#include "ucs/layout/layout.hpp"
#include "uct/cuda_nc/user_buffer.hpp"
#include "uct/cuda_nc/memory/peer_memory.hpp"
#include "uct/cuda_nc/protocol/wire.hpp"

namespace cuda_nc::uct {

// Whether the offer is of bytes on `gpu`, which may be null.
bool is_on(const gpu::device *gpu, const wire::sender_offer &offer) noexcept;
// Writes into an offer which GPU its bytes lie on. False: that cannot be said.
bool name_gpu(int device, wire::sender_offer *offer_p) noexcept;

// descriptor.allocation is 0 where the bytes cannot be pulled: they lie in more than one
// allocation, or in memory that CUDA IPC does not share.
wire::source_descriptor describe_source(const user_buffer &buffer) noexcept;

// The same of contiguous GPU memory; `memory` is what was found at `address`.
wire::source_descriptor describe_memory(const gpu::memory_info &memory, uint64_t address,
                                        uint64_t length) noexcept;

struct source {
    peer_memory memory;
    char *base = nullptr;  // displacement 0, as our GPU reaches it; null: there is nothing to pull
    layout_ref what;       // null: laid out as our target is

    explicit operator bool() const noexcept { return base != nullptr; }
};

// Whether a sender has laid out a message of `total` bytes just as `target` says.
bool is_alike(const wire::sender_offer &offer, const layout &target, uint64_t total) noexcept;

// For a message of `total` bytes to `target`. What the offer says is checked: nothing outside
// the sender's allocation is described. Memory is not opened where more than about `most_detour`
// bytes beside those wanted would be read.
source reach_source(int device, const wire::early_offer &offer, const layout &target,
                    uint64_t total, uint64_t most_detour) noexcept;

// The sender's `total` bytes where they are contiguous; empty where they are not, or cannot be
// reached. Checked as above.
peer_memory reach_memory(int device, const process_id &owner,
                         const wire::source_descriptor &descriptor, uint64_t total) noexcept;

}  // namespace cuda_nc::uct
