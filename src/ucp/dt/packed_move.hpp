// Packs a buffer into memory without gaps, and unpacks it from there, in one call: what MPI's own
// packing does, and its copies within a process. Both sides may be memory of any served kind. Where
// one GPU reaches both, its kernels move the bytes; else they pass through host memory.
#pragma once

#include <cstdint>

#include "ucs/base/status.hpp"
#include "ucs/gpu/device.hpp"
#include "ucs/layout/layout.hpp"

namespace cuda_nc::dt {

// Where packed bytes lie, and in what kind of memory.
struct packed_place {
    char *start = nullptr;
    gpu::memory_info lies;

    packed_place after(uint64_t bytes) const noexcept { return {start + bytes, lies}; }
};

// Asks what memory lies at `start`.
packed_place packed_place_at(void *start) noexcept;

// All of `what`, displacement 0 of which is `base`. Returns when the bytes are there.
// UCS_ERR_NO_MEMORY, also for memory that cannot be served. Where bytes cannot be read the process
// ends, as in request_state::pack().
ucs_status_t pack_all(const layout_ref &what, const void *base, const packed_place &to) noexcept;
// The first `length` packed bytes, no more than there are.
ucs_status_t unpack_first(const layout_ref &what, void *base, const packed_place &from,
                          uint64_t length) noexcept;

}  // namespace cuda_nc::dt
