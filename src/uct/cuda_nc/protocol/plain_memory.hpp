// Contiguous GPU memory of a receive that no datatype of ours has: UCP alone knows the request, and
// its RTR says where the bytes go.
#pragma once

#include "uct/cuda_nc/user_buffer.hpp"

namespace cuda_nc::uct {

class plain_memory final : public user_buffer {
  public:
    // `length` bytes at `address`, in GPU memory.
    plain_memory(const gpu::memory_info &memory, uint64_t address, uint64_t length) noexcept
        : memory_(memory), address_(address), length_(length) {}

    int device() const noexcept override { return memory_.device; }
    gpu::allocation_info allocation() const noexcept override { return memory_.allocation; }
    const gpu::memory_info &memory() const noexcept { return memory_; }
    uint64_t packed_bytes() const noexcept override { return length_; }
    uint64_t address() const noexcept { return address_; }
    // The sender packs straight into it: no launch of ours is needed.
    ucs_status_t enqueue(uint64_t, uint64_t, char *, gpu::event &) noexcept override {
        return UCS_ERR_UNSUPPORTED;
    }

  private:
    const gpu::memory_info memory_;
    const uint64_t address_, length_;
};

}  // namespace cuda_nc::uct
