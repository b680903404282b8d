// What send_pipeline and receive_pipeline have in common: kernels move a message between a GPU and
// host memory, and plain copies move what kernels cannot.
#pragma once

#include "ucp/dt/device_packer.hpp"

namespace cuda_nc::dt {

class host_pipeline {
  public:
    uint64_t packed_size() const noexcept { return packer_.packed_size(); }
    const layout &what() const noexcept { return packer_.what(); }
    // For statistics.
    const char *path() const noexcept;
    const char *why() const noexcept;

    // For the transport, which moves the bytes of a direct message itself.
    device_packer &packer() noexcept { return packer_; }
    const device_packer &packer() const noexcept { return packer_; }
    void count_direct() noexcept { direct_ = true; }

  protected:
    ~host_pipeline() = default;

    ucs_status_t open(gpu::direction dir, layout_ref &&what, char *base,
                      const gpu::memory_info &memory) noexcept;

    // To be called where a launch or a kernel has failed: no other is tried for this message.
    void no_kernels(ucs_status_t status) noexcept;
    bool kernels_failed() const noexcept { return kernels_failed_; }

    // Moves packed bytes [offset, offset + length) through the bounce buffer, or, where that fails,
    // by one copy for each block; returns when done.
    ucs_status_t move_slowly(uint64_t offset, char *packed, size_t length) noexcept;
    // The same by one copy for each block alone.
    ucs_status_t copy_blocks(uint64_t offset, char *packed, size_t length) noexcept;

    device_packer packer_;

  private:
    bool kernels_failed_ = false;
    bool bounced_ = false, copied_ = false, out_of_memory_ = false, direct_ = false;
};

}  // namespace cuda_nc::dt
