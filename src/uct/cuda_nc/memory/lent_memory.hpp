// Memory into which other processes' GPUs write, on our GPUs or pinned on the host: regions of a
// few large allocations, each lent to one message at a time. Allocated when first needed and kept,
// at most half of UCX_CUDA_NC_STAGING_SIZE on all GPUs and an eighth of it on the host. Thread
// safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ucs/gpu/device.hpp"

namespace cuda_nc::uct {

struct arena;

struct region {
    char *address = nullptr;
    size_t size = 0;    // bytes, at least as many as asked for
    size_t offset = 0;  // in the allocation, as a peer sees it
    arena *owner = nullptr;

    explicit operator bool() const noexcept { return address != nullptr; }
    const gpu::ipc_handle &handle() const noexcept;
};

// Empty: the bound is reached, or there is no memory. Aligned to 32 KiB.
region acquire_region(int device, size_t size) noexcept;

// Of pinned host memory, which `device` and all others reach; its handle is for
// reach_peer_host_memory(). Empty for ever once there is none.
region acquire_host_region(int device, size_t size) noexcept;

// The whole allocation that holds it, which lives as long as the process.
struct allocated_bytes {
    char *address;
    size_t size;
};
allocated_bytes allocation_of(const region &part) noexcept;

// Nobody writes there any more.
void release_region(const region &back) noexcept;

// Where bytes [offset, offset + length) lie of what peers know by `handle`, if `device` reaches
// them; else null.
char *find_lent(int device, const gpu::ipc_handle &handle, uint64_t offset,
                uint64_t length) noexcept;

// Bytes below the bound that are not lent now.
size_t lendable() noexcept;
size_t lendable_on_host() noexcept;

size_t regions_lent() noexcept;  // how many are taken now; for tests

}  // namespace cuda_nc::uct
