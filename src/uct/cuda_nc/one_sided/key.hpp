// Keys of GPU memory: what a process tells others so that they can put and get, and what they make
// of it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ucs/gpu/device.hpp"
#include "uct/cuda_nc/memory/peer_memory.hpp"
#include "uct/cuda_nc/memory/process_id.hpp"

namespace cuda_nc::uct {

constexpr uint8_t one_sided_version = 1;

// As it travels. It names the whole allocation, because CUDA IPC shares nothing smaller.
struct packed_key {
    uint8_t version;
    uint8_t is_shared;  // 0: others cannot reach this memory
    uint8_t padding[2];
    uint32_t host;  // the running machine
    process_id process;
    uint64_t allocation;  // gpu::allocation_info::id: tells memory of now from memory of before
    uint64_t base, size;  // the owner's address, bytes
    gpu::ipc_handle memory;
};
static_assert(sizeof(packed_key) == 112, "it travels");

// Of the allocation that holds [address, address + length) of GPU `device`. is_shared is 0 where
// there is no such allocation or span of pieces, or its kind is not shared. The key can be used
// while *keeper_p lives, which may be null.
packed_key make_key(int device, uint64_t address, uint64_t length,
                    std::shared_ptr<void> *keeper_p) noexcept;

// Another process's memory. Used with UCX's worker locked.
class remote_key {
  public:
    explicit remote_key(const packed_key &packed) noexcept : packed_(packed) {}

    bool contains(uint64_t address, uint64_t length) const noexcept {
        return address >= packed_.base && length <= packed_.size &&
               address - packed_.base <= packed_.size - length;
    }
    // The whole allocation as `device` reaches it. Empty: it cannot be mapped.
    peer_memory reach(int device) const noexcept;
    uint64_t base() const noexcept { return packed_.base; }

    // Who keeps the mapping open, and where it is: of one user at a time for each GPU.
    struct note {
        uint64_t user = 0;
        char *mapped = nullptr;
    };
    // Null: no memory.
    note *note_for(int device) noexcept;

  private:
    const packed_key packed_;
    std::vector<note> notes_;  // by device
};

}  // namespace cuda_nc::uct
