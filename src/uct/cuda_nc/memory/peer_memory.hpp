// Other processes' memory, on GPUs or pinned on the host, as our GPUs reach it. Thread safe.
#pragma once

#include <memory>

#include "ucs/gpu/device.hpp"
#include "uct/cuda_nc/memory/process_id.hpp"

namespace cuda_nc::uct {

// A part of such memory; while it lives the memory stays open.
struct peer_memory {
    std::shared_ptr<gpu::memory> keeper;
    char *address = nullptr;

    explicit operator bool() const noexcept { return address != nullptr; }
};

// Bytes [offset, offset + length) of the allocation of `owner`, aligned to `alignment`, as our
// `device` reaches them. Empty where it has not got them, or cannot be opened. An allocation is
// opened once, and closed after its owner is gone.
peer_memory reach_peer_memory(int device, const gpu::ipc_handle &handle, const process_id &owner,
                              uint64_t offset, uint64_t length, size_t alignment) noexcept;

// An allocation that the user made in process `owner`, another than ours, at `base` and with `id`
// (see gpu::allocation_info). 64 stay open, and more where those that were closed are reached again
// (room_by_need.hpp). What the user frees meanwhile stays allocated until we or UCX need its place,
// or as many others have been reached. One that could not be opened is tried again after a second,
// and then after twice as long each time, a minute at most; or `at_once`, for callers that have no
// other way to it.
peer_memory reach_user_memory(int device, const gpu::ipc_handle &handle, const process_id &owner,
                              uint64_t id, uint64_t base, bool at_once = false) noexcept;
// Libraries have been loaded, a second UCX perhaps: they too get the places that they need from
// mappings of ours that nobody uses. (UCX ends the process where it does not get one.)
void watch_new_libraries() noexcept;

// The same as reach_peer_memory() of pinned host memory that `owner` shares.
peer_memory reach_peer_host_memory(int device, const gpu::ipc_handle &handle,
                                   const process_id &owner, uint64_t offset,
                                   uint64_t length) noexcept;

// Closes what belongs to processes that are gone, and is not used. Whether more is open that nobody
// uses, of processes whose end will be seen.
bool close_memory_of_the_gone() noexcept;

size_t peer_allocations_open() noexcept;  // for tests

}  // namespace cuda_nc::uct
