// One side of a move: a layout in a buffer, and the memory that it lies in.
#pragma once

#include "capi/layout_object.hpp"
#include "ucs/gpu/device.hpp"

namespace cuda_nc::capi {

// A buffer with a layout, or contiguous bytes.
struct side {
    const char *name;    // of the buffer's parameter
    const layout &what;  // for contiguous bytes: those of one block at displacement 0
    char *base;          // displacement 0
    gpu::memory_info memory = {};

    bool is_on_gpu() const noexcept { return gpu::is_on_gpu(memory.kind); }
};

// Finds the memory of `of`, which has bytes. UCS_ERR_INVALID_PARAM: a null buffer.
// UCS_ERR_UNSUPPORTED: memory that is not served, or of several kinds.
ucs_status_t find_memory(side *of) noexcept;

// The GPU whose kernels move bytes between both. Null, and UCS_OK: the CPU moves them.
// UCS_ERR_UNSUPPORTED: no GPU reaches both.
ucs_status_t find_device(const side &one, const side &other, gpu::device **where_p) noexcept;

}  // namespace cuda_nc::capi
