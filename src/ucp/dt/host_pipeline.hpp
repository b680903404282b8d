// What a message between a GPU and host memory has in both directions: kernels move it as long as
// they can, plain copies the rest.
#pragma once

#include "ucp/dt/device_mover.hpp"

namespace cuda_nc::dt {

class host_pipeline {
  public:
    uint64_t packed_size() const noexcept { return mover_.packed_size(); }
    const layout &what() const noexcept { return mover_.what(); }
    // For statistics.
    const char *path() const noexcept;
    const char *why() const noexcept;

    // For a transport that moves the bytes itself.
    device_mover &mover() noexcept { return mover_; }
    void count_direct() noexcept { direct_ = true; }

  protected:
    ~host_pipeline() = default;

    ucs_status_t open(gpu::direction dir, layout_ref what, char *base, int ordinal) noexcept;

    // A launch or a kernel has failed: no other one is tried.
    void no_kernels(ucs_status_t status) noexcept;
    bool kernels_failed() const noexcept { return kernels_failed_; }

    // Moves packed bytes [offset, offset + length) through the bounce buffer, or without kernels;
    // returns when done.
    ucs_status_t move_slowly(uint64_t offset, char *packed, size_t length) noexcept;
    // Without kernels.
    ucs_status_t copy_blocks(uint64_t offset, char *packed, size_t length) noexcept;

    device_mover mover_;

  private:
    bool kernels_failed_ = false;
    bool bounced_ = false, copied_ = false, out_of_memory_ = false, direct_ = false;
};

}  // namespace cuda_nc::dt
