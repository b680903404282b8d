// Contiguous GPU memory of a receive that no datatype of ours has: UCP alone knows the request, and
// its RTR says where the bytes go.
#pragma once

#include <memory>

#include "ucs/layout/layout.hpp"
#include "uct/cuda_nc/engine/stream_pool.hpp"
#include "uct/cuda_nc/user_buffer.hpp"

namespace cuda_nc::uct {

class plain_memory final : public user_buffer {
  public:
    // `length` bytes at `address`, in GPU memory.
    plain_memory(const gpu::memory_info &memory, uint64_t address, uint64_t length) noexcept
        : memory_(memory), address_(address), length_(length) {}

    // For routes on which we move the bytes here: all but straight, where the sender packs into
    // this memory. False: there is no memory.
    bool make_movable() noexcept;
    bool is_movable() const noexcept { return layout_ != nullptr; }
    // For enqueue(), which else looks for a stream when it is called.
    bool reserve_stream() noexcept;

    int device() const noexcept override { return memory_.device; }
    gpu::allocation_info allocation() const noexcept override { return memory_.allocation; }
    const gpu::memory_info &memory() const noexcept { return memory_; }
    uint64_t packed_bytes() const noexcept override { return length_; }
    uint64_t address() const noexcept { return address_; }

    // After make_movable().
    const layout *laid_out(char **base_p) const noexcept override;
    ucs_status_t enqueue(uint64_t offset, uint64_t length, char *packed,
                         gpu::event &done) noexcept override;
    ucs_status_t enqueue_copies(uint64_t offset, uint64_t length, char *packed, bool,
                                gpu::event &done) noexcept override {
        return enqueue(offset, length, packed, done);
    }
    ucs_status_t prepare(gpu::pipe_work &work, gpu::stream &,
                         bool in_memory_order) noexcept override {
        return describe(work, in_memory_order);
    }
    ucs_status_t describe(gpu::pipe_work &work, bool in_memory_order) noexcept override;

  private:
    char *base() const noexcept {
        return reinterpret_cast<char *>(static_cast<uintptr_t>(address_));
    }

    const gpu::memory_info memory_;
    const uint64_t address_, length_;
    layout_ref layout_;                      // one block
    std::shared_ptr<pooled_stream> stream_;  // of enqueue(): slots, and what a pipe leaves behind
};

}  // namespace cuda_nc::uct
