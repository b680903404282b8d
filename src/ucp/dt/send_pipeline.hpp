// Packs a message that lies in GPU memory in growing chunks, ahead of UCP, and copies UCP's
// fragments from them. Packs nothing before UCP asks for the first bytes: where UCX (1.22 and
// before) aborts a rendezvous before the receiver's answer, it does not call finish(), and the user
// may free the memory then.
#pragma once

#include "ucp/dt/host_pipeline.hpp"

namespace cuda_nc::dt {

class send_pipeline : public host_pipeline {
  public:
    ucs_status_t begin(layout_ref &&what, const void *base,
                       const gpu::memory_info &memory) noexcept;

    // Writes packed bytes [offset, offset + length) of the message to host memory, and packs
    // `ahead` chunks of what follows. Fails only where kernels and copies both do.
    ucs_status_t read(uint64_t offset, char *packed, size_t length,
                      unsigned ahead = depth) noexcept;

    // Waits for all kernels, returns all staging.
    void end() noexcept;

  private:
    static constexpr unsigned depth = 4;  // chunks in flight

    struct chunk {
        staging_buffer *buffer = nullptr;
        uint64_t begin = 0, end = 0;  // packed bytes
        bool ready = false;
    };

    chunk &front() noexcept { return chunks_[first_ % depth]; }
    void restart(uint64_t offset) noexcept;
    size_t first_length() const noexcept;  // bytes of a chunk at next_ with none before it
    void retire_front(bool keep_buffer) noexcept;
    void keep_or_release(staging_buffer *buffer) noexcept;
    void launch_ahead(unsigned limit) noexcept;
    bool front_ready() noexcept;

    chunk chunks_[depth];
    unsigned first_ = 0, count_ = 0;
    staging_buffer *spare_ = nullptr;
    uint64_t next_ = 0;   // first packed byte not launched
    size_t growing_ = 0;  // bytes of the next chunk; 0: not chosen yet
};

}  // namespace cuda_nc::dt
