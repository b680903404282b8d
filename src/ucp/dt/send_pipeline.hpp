// Packs a message that lies in GPU memory ahead of UCP, in growing chunks, and serves UCP's
// fragments from them. Nothing is packed before UCP asks for the first bytes: UCX (1.22 and before)
// does not call finish() for a rendezvous that it aborts before the receiver's answer, and the user
// may free the memory then.
#pragma once

#include "ucp/dt/host_pipeline.hpp"

namespace cuda_nc::dt {

class send_pipeline : public host_pipeline {
  public:
    ucs_status_t begin(layout_ref what, const void *base, int ordinal) noexcept;

    // Writes packed bytes [offset, offset + length), which the message has, to host memory, and
    // packs `ahead` chunks of what follows. Fails only where kernels and plain copies both do.
    ucs_status_t read(uint64_t offset, char *packed, size_t length,
                      unsigned ahead = depth) noexcept;

    // Waits for what is under way, returns all staging.
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
    void retire_front(bool keep_buffer) noexcept;
    void give_back(staging_buffer *buffer) noexcept;
    void launch_ahead(unsigned limit) noexcept;
    bool front_ready() noexcept;

    chunk chunks_[depth];
    unsigned first_ = 0, count_ = 0;
    staging_buffer *spare_ = nullptr;
    uint64_t next_ = 0;   // first packed byte not launched
    size_t growing_ = 0;  // bytes of the next chunk
};

}  // namespace cuda_nc::dt
