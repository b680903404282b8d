// Host memory of another process of this machine, which the kernel copies to and from
// (process_vm_writev and its like, as UCX's cma).
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

#include "ucs/base/status.hpp"
#include "ucs/gpu/block_pair.hpp"
#include "uct/cuda_nc/memory/process_id.hpp"

namespace cuda_nc::uct {

class host_process {
  public:
    // Null: it is gone, or what it is cannot be made sure of.
    static std::shared_ptr<host_process> find(const process_id &which) noexcept;
    ~host_process();
    host_process(const host_process &) = delete;
    host_process &operator=(const host_process &) = delete;

    // Of this process, from 0 on: no two have the same.
    int number() const noexcept { return number_; }
    bool has_ended() const noexcept;
    // Whether the system lets us read and write its memory. Asked once.
    bool is_open() const noexcept;

    // Blocks of one call of the kernel.
    static constexpr size_t most_blocks = 1024;
    // Moves all bytes before it returns. `writes`: `to` of each pair is in the other process, else
    // `from` is. UCS_ERR_CONNECTION_RESET: it is gone; UCS_ERR_INVALID_ADDR: memory that is not
    // there. After an error some may have been moved.
    ucs_status_t move(bool writes, const gpu::block_pair *pairs, size_t count) const noexcept;

  private:
    host_process(const process_id &which, int file, int number) noexcept
        : which_(which), file_(file), number_(number) {}

    const process_id which_;
    const int file_;  // its number is nobody else's while this is open and says that it runs
    const int number_;
    mutable std::atomic<bool> is_open_{false};
};

}  // namespace cuda_nc::uct
