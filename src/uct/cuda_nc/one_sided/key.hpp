// Keys of memory: what a process tells others so that they can put and get, and what they make of
// it.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "ucs/gpu/device.hpp"
#include "uct/cuda_nc/memory/peer_memory.hpp"
#include "uct/cuda_nc/memory/process_id.hpp"
#include "uct/cuda_nc/one_sided/host_process.hpp"

namespace cuda_nc::uct {

constexpr uint8_t one_sided_version = 2;

// How others reach the memory of a key.
enum class sharing : uint8_t { none, gpu_memory, host_memory };

// As it travels. Of GPU memory it names the whole allocation, because CUDA IPC shares nothing
// smaller.
struct packed_key {
    uint8_t version;
    sharing is_shared;
    uint8_t padding[2];
    uint32_t host;  // the running machine
    process_id process;
    uint64_t allocation;  // gpu::allocation_info::id: tells memory of now from memory of before
    uint64_t base, size;  // the owner's address, bytes
    gpu::ipc_handle memory;
    uint64_t begin, length;  // what the key was asked for, of these bytes
};
static_assert(sizeof(packed_key) == 128, "it travels");

inline bool lies_within(uint64_t address, uint64_t length, uint64_t base, uint64_t size) noexcept {
    return address >= base && length <= size && address - base <= size - length;
}
inline bool allocation_holds(const packed_key &key, uint64_t address, uint64_t length) noexcept {
    return lies_within(address, length, key.base, key.size);
}

// Of [address, address + length) of GPU `device`. It is not shared where no allocation or span of
// pieces holds these bytes, or its kind is not shared. The key can be used while *keeper_p lives,
// which may be null.
packed_key make_key(int device, uint64_t address, uint64_t length,
                    std::shared_ptr<void> *keeper_p) noexcept;
// Of host memory.
packed_key make_host_key(uint64_t address, uint64_t length) noexcept;

// Another process's memory. Used with UCX's worker locked.
class remote_key {
  public:
    explicit remote_key(const packed_key &packed) noexcept : packed_(packed) {}
    // Of host memory.
    remote_key(const packed_key &packed, std::shared_ptr<const host_process> owner) noexcept
        : packed_(packed), owner_(std::move(owner)) {}

    // Others of the allocation's bytes are refused, though a mapping reaches them.
    bool contains(uint64_t address, uint64_t length) const noexcept {
        return lies_within(address, length, packed_.begin, packed_.length);
    }
    // The whole allocation as `device` reaches it. Empty: it cannot be mapped. `at_once`: that is
    // tried even where it has failed a moment ago.
    peer_memory reach(int device, bool at_once) const noexcept;
    uint64_t base() const noexcept { return packed_.base; }
    // Null: it is GPU memory.
    const std::shared_ptr<const host_process> &owner() const noexcept { return owner_; }

    // Who keeps the mapping open, and where it is: of one user at a time for each GPU.
    struct note {
        uint64_t user = 0;
        char *mapped = nullptr;
    };
    // `lane` of a list_mover. Null: no memory.
    note *note_for(int lane) noexcept;

  private:
    const packed_key packed_;
    const std::shared_ptr<const host_process> owner_;
    int first_lane_ = 0;  // that has asked for a note, if has_first_
    bool has_first_ = false;
    note first_;               // most keys have one user
    std::vector<note> notes_;  // the others': by device; of host memory by direction
};

// The keys that UCP has, by their handles: UCP takes the handle of each block of a list from one
// place of that block's key, whatever domain's handle lies there. Thread safe.
bool add_key(const remote_key &made) noexcept;  // false: no memory
void remove_key(const remote_key &released) noexcept;
bool are_keys(const uintptr_t *handles, size_t number) noexcept;
inline uintptr_t handle_of(const remote_key &key) noexcept {
    return reinterpret_cast<uintptr_t>(&key);
}

}  // namespace cuda_nc::uct
