// The memory of one simulated device: a range without access rights, and its allocator.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "ucs/base/status.hpp"

namespace cuda_nc::gpu::sim {

// Mappings begin at multiples of it: a page of any system that we build for (Arm: up to 64 KiB).
constexpr size_t page = 64 << 10;

// A driver keeps blocks of this size for its GPU's memory: none also holds memory of the host.
constexpr size_t gpu_block = size_t(2) << 20;
// What to reserve for the blocks of `size` bytes, wherever the system puts them.
size_t reserved_bytes(size_t size) noexcept;

// A file without a name, mapped twice: at `view`, without access rights and in blocks of 2 MiB that
// hold nothing else, and at `alias`, for the simulator.
class double_mapping {
  public:
    double_mapping() = default;
    ~double_mapping();
    double_mapping(const double_mapping &) = delete;
    double_mapping &operator=(const double_mapping &) = delete;

    // Maps `size` bytes of `fd` from `offset` on, both multiples of `page`.
    bool map(int fd, off_t offset, size_t size) noexcept;

    uintptr_t view() const noexcept { return view_; }
    uintptr_t alias() const noexcept { return alias_; }
    size_t size() const noexcept { return size_; }

  private:
    uintptr_t reserved_ = 0, view_ = 0, alias_ = 0;
    size_t size_ = 0;
};

class arena {
  public:
    // Null where the system refuses the range.
    static std::unique_ptr<arena> make(size_t limit) noexcept;
    ~arena();

    // `size` bytes, aligned as cudaMalloc does, not adjacent to any other allocation.
    ucs_status_t allocate(size_t size, uintptr_t *address_p) noexcept;
    void release(uintptr_t address, size_t size) noexcept;

    uintptr_t begin() const noexcept { return mapping_.view(); }
    uintptr_t end() const noexcept { return mapping_.view() + mapping_.size(); }
    uintptr_t alias(uintptr_t address) const noexcept {
        return address - mapping_.view() + mapping_.alias();
    }
    int fd() const noexcept { return fd_; }

  private:
    arena() = default;

    int fd_ = -1;
    double_mapping mapping_;
    size_t limit_ = 0;  // bytes that may be allocated
    std::mutex mutex_;
    size_t used_ = 0;
    std::map<size_t, size_t> free_;  // offset -> bytes; never adjacent
};

}  // namespace cuda_nc::gpu::sim
