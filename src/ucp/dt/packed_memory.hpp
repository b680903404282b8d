// Memory for the packed bytes of one call of the application's: a GPU's, or the host's. Pinned and
// GPU memory is kept for later calls: to make it takes longer than to fill it.
#pragma once

#include <cstdint>

#include "ucp/dt/packed_move.hpp"

namespace cuda_nc::dt {

class packed_memory {
  public:
    packed_memory() = default;
    packed_memory(packed_memory &&other) noexcept;
    packed_memory &operator=(packed_memory &&other) noexcept;
    ~packed_memory() { give_back(); }

    // Memory of the GPU `ordinal`, which other processes can be given (device::ipc_export). Holds
    // nothing where there is none, or the bound of the process is reached.
    static packed_memory of_gpu(int ordinal, uint64_t size) noexcept;
    // Pinned memory, which GPUs reach, for more than 64 KiB; else, or where there is none, memory
    // of malloc. `ordinal`: a GPU that is to use it, -1: none. Holds nothing where memory is
    // exhausted.
    static packed_memory of_host(int ordinal, uint64_t size) noexcept;

    bool is_held() const noexcept { return place_.start != nullptr; }
    const packed_place &place() const noexcept { return place_; }
    char *start() const noexcept { return place_.start; }

    // Frees what no call holds. Not in a forked child.
    static void release_unused() noexcept;

  private:
    void give_back() noexcept;

    packed_place place_;
    gpu::memory *owner_ = nullptr;  // null: of malloc
};

}  // namespace cuda_nc::dt
