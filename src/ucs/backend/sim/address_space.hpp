// The memory that the simulated GPUs of a platform know, and where the simulator accesses it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <shared_mutex>
#include <vector>

#include "ucs/gpu/device.hpp"

namespace cuda_nc::gpu::sim {

// One live allocation, [begin, end).
struct region {
    uintptr_t begin = 0, end = 0;
    uintptr_t alias = 0;  // the simulator's address of the byte at `begin`
    memory_kind kind = memory_kind::host;
    int device = -1;  // where the memory is; -1 for pinned memory
    sharing shared = sharing::by_handle;
    size_t piece = 0;        // bytes; not 0: it is made of pieces
    bool everywhere = true;  // every device reaches it, not only its own
    uint64_t id = 0;         // given by add()

    bool holds(uintptr_t address, size_t length) const noexcept {
        return address >= begin && address <= end && length <= end - address;
    }
    char *at(uintptr_t address) const noexcept {
        return reinterpret_cast<char *>(alias + (address - begin));
    }
};

class address_space {
  public:
    // All addresses of the range belong to the device, allocated or not. Called before any other
    // use.
    void add_range(int device, uintptr_t begin, uintptr_t end);

    void add(region one);  // throws std::bad_alloc
    void remove(uintptr_t begin) noexcept;
    // From now on the live allocation that begins there can be given to other processes so;
    // `piece`: bytes of the pieces that it is made of, where by_descriptor.
    void set_sharing(uintptr_t begin, sharing how, size_t piece) noexcept;

    // The live allocation that holds [address, address + length), length of at least 1.
    bool find(const void *address, size_t length, region *region_p) const noexcept;

    memory_info query(const void *address) const noexcept;

  private:
    struct range {
        uintptr_t begin, end;
        int device;
    };
    std::vector<range> ranges_;
    mutable std::shared_mutex mutex_;
    std::map<uintptr_t, region> regions_;
    uint64_t last_id_ = 0;
    std::atomic<size_t> elsewhere_{0};  // regions outside every range: pinned, of other processes
};

}  // namespace cuda_nc::gpu::sim
