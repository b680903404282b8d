// Work lists: the form of a layout that a GPU executes.
//
// A strided layout needs no list: its numbers travel in the kernel's arguments. A list of blocks
// is put into GPU memory once, in parts, each on the stream that needs it, so that kernels of the
// first part run while the CPU still prepares the next; then it stays in a cache, bounded by
// UCX_CUDA_NC_WORKLIST_CACHE_SIZE bytes a device, least recently used first out, found by content.
//
// The DEV (datatype engine vector) list of Wu et al., "GPU-aware non-contiguous data movement in
// Open MPI" (HPDC 2016), compressed to little more than 4 bytes a block where lengths are uniform,
// 8 to 10 where they vary.
#pragma once

#include <cstdint>
#include <memory>

#include "ucs/gpu/device.hpp"
#include "ucs/layout/layout.hpp"

namespace cuda_nc::worklist {

class work_list {
  public:
    virtual ~work_list() = default;

    // Makes packed bytes [0, packed_end) executable by work enqueued on `on` after this call.
    // Enqueues at most the missing parts and never waits for the GPU. UCS_ERR_NO_MEMORY: there is
    // no list, now or ever; the caller takes the slower path.
    virtual ucs_status_t prepare(gpu::stream &on, uint64_t packed_end) noexcept = 0;

    // Up to where a kernel that starts at packed byte `begin` should go, in (begin, end]: what is
    // in GPU memory already, or what the next part adds; `end` where the rest takes no longer.
    virtual uint64_t part_end(uint64_t begin, uint64_t end) const noexcept = 0;

    // The layout with tables in GPU memory, for gpu::transfer::layout.
    virtual const layout_view &view() const noexcept = 0;

    virtual size_t device_bytes() const noexcept = 0;
};

using work_list_ref = std::shared_ptr<work_list>;

// Prepares and enqueues `work`, whose layout need not be set, on `on`: at once where the list is in
// GPU memory, else in growing pieces, each behind the part of the list that it needs, so that the
// first runs while the CPU prepares the next.
ucs_status_t launch(work_list &list, gpu::stream &on, gpu::transfer work) noexcept;

struct cache_statistics {
    uint64_t hits = 0, misses = 0, evictions = 0;
    uint64_t bytes = 0;        // in GPU memory now
    uint64_t bytes_moved = 0;  // over the bus since the start
};

// The list of `source` on `where`, made or found. A list in use outlives its eviction. Layouts
// without tables get a list that costs nothing and is not counted.
// Failures: UCS_ERR_NO_MEMORY (the caller takes the slower path).
ucs_status_t acquire(gpu::device &where, const layout_ref &source, work_list_ref *list_p) noexcept;

cache_statistics statistics(gpu::device &where) noexcept;

// Releases every list not in use; for tests and for a device short of memory.
void trim(gpu::device &where) noexcept;

}  // namespace cuda_nc::worklist
