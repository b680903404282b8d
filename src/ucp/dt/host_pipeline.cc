#include "ucp/dt/host_pipeline.hpp"

#include <utility>

#include "ucs/base/log.hpp"

namespace cuda_nc::dt {

ucs_status_t host_pipeline::open(gpu::direction dir, layout_ref &&what, char *base,
                                 const gpu::memory_info &memory) noexcept {
    ucs_status_t status = packer_.open(dir, std::move(what), base, memory);
    if (status != UCS_OK) {
        return status;
    }
    kernels_failed_ = bounced_ = copied_ = direct_ = false;
    out_of_memory_ = !packer_.has_kernels();
    return UCS_OK;
}

void host_pipeline::no_kernels(ucs_status_t status) noexcept {
    nc_debug("%s by kernels failed (%s): copies move what is left of the message",
             packer_.dir() == gpu::direction::pack ? "packing" : "unpacking", status_text(status));
    kernels_failed_ = true;
    out_of_memory_ |= status == UCS_ERR_NO_MEMORY;
}

ucs_status_t host_pipeline::move_slowly(uint64_t offset, char *packed, size_t length) noexcept {
    if (packer_.has_kernels() && !kernels_failed_) {
        ucs_status_t status = packer_.bounce(offset, packed, length);
        if (status == UCS_OK) {
            bounced_ = true;
            return UCS_OK;
        }
        if (status == UCS_ERR_NO_MEMORY) {  // the next bytes try again
            out_of_memory_ = true;
        } else {
            no_kernels(status);
        }
    }
    return copy_blocks(offset, packed, length);
}

ucs_status_t host_pipeline::copy_blocks(uint64_t offset, char *packed, size_t length) noexcept {
    copied_ = true;
    return packer_.copy_blocks(offset, packed, length);
}

const char *host_pipeline::path() const noexcept {
    return direct_               ? "GPU to GPU"
           : copied_             ? "block copies"
           : packer_.zero_copy() ? "GPU zero-copy"
                                 : "GPU staged copy";
}

const char *host_pipeline::why() const noexcept {
    if (!copied_) {
        return bounced_ ? "staging short" : "buffer in GPU memory";
    }
    return out_of_memory_ ? "out of GPU or pinned memory" : "a launch or kernel failed";
}

}  // namespace cuda_nc::dt
