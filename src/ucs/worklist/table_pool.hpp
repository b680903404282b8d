// GPU memory for the tables of work lists. Small lists share allocations, which are cut and joined
// here: programs that make thousands of datatypes would otherwise call the driver for each.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "ucs/gpu/device.hpp"

namespace cuda_nc::worklist {

class table_pool;

// A list's part of the pool, given back at destruction. Work that uses it must be done by then.
class table_memory {
  public:
    table_memory() noexcept = default;
    ~table_memory();
    table_memory(const table_memory &) = delete;
    table_memory &operator=(const table_memory &) = delete;

    char *address() const noexcept { return own_ != nullptr ? own_->address() : address_; }
    size_t size() const noexcept { return size_; }  // bytes, rounded up to the alignment
    // Nobody will see the end of work that uses it: it is not given back.
    void keep_for_ever() noexcept;

  private:
    friend class table_pool;
    table_pool *pool_ = nullptr;
    char *address_ = nullptr;  // in a shared allocation
    size_t size_ = 0;
    std::unique_ptr<gpu::memory> own_;  // of a large list
};

// Of one device. Thread safe. Must outlive all memory that it lends.
class table_pool {
  public:
    static constexpr size_t alignment = 256;  // bytes

    explicit table_pool(gpu::device &where) noexcept : where_(where) {}

    // `memory` must be empty. The status is that of gpu::device::allocate(). Throws std::bad_alloc,
    // with nothing acquired.
    ucs_status_t acquire(size_t size, table_memory &memory);

    // Frees the shared allocations that nobody uses. Else the last one is kept.
    void release_unused() noexcept;

    // Shared allocations now; for tests.
    size_t num_shared() noexcept;

  private:
    friend class table_memory;

    // Free bytes of the shared allocation that begins at `of`.
    struct range {
        size_t size;
        char *of;
    };
    using range_map = std::map<char *, range>;

    ucs_status_t add_shared(size_t size);
    void add_free(char *address, size_t size, char *of);
    void remove_free(range_map::iterator at) noexcept;
    void release(char *address, size_t size) noexcept;

    gpu::device &where_;
    std::mutex mutex_;
    std::map<char *, std::unique_ptr<gpu::memory>> shared_;  // by address
    range_map free_;                                         // by address
    std::set<std::pair<size_t, char *>> by_size_;            // the same
    size_t num_unused_ = 0;                                  // shared allocations without users
};

}  // namespace cuda_nc::worklist
