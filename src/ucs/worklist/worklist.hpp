// Work lists: the form of a layout that a GPU executes.
//
// A strided layout needs no tables: its numbers are kernel arguments. The tables of a list of
// blocks are uploaded to GPU memory once, part by part, each on the stream that needs it, so that
// kernels of the first part run while the CPU prepares the next. Then they stay in a cache, where
// they are found by content: at most UCX_CUDA_NC_WORKLIST_CACHE_SIZE bytes and
// UCX_CUDA_NC_WORKLIST_CACHE_LISTS lists a device, least recently used out first. A list takes
// about 1 KB of host memory beside the GPU's: its layout is given back once the tables are there.
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

    // Kernels enqueued on `on` after this call may move packed bytes [0, packed_end). Enqueues the
    // uploads that are missing; never waits for the GPU. UCS_ERR_NO_MEMORY: the list is unusable
    // for good; the caller moves the bytes through host memory.
    virtual ucs_status_t prepare(gpu::stream &on, uint64_t packed_end) noexcept = 0;

    // Whether a kernel that no stream orders may move packed bytes [0, packed_end): the GPU has the
    // tables. Enqueues nothing.
    virtual bool is_ready(uint64_t packed_end) noexcept = 0;

    // Where a kernel that starts at packed byte `begin` should stop, in (begin, end]: at the end of
    // the tables in GPU memory, or of the next part of them; `end` where one kernel for all is as
    // fast.
    virtual uint64_t part_end(uint64_t begin, uint64_t end) const noexcept = 0;

    // The layout with tables in GPU memory, for gpu::transfer::layout.
    virtual const layout_view &view() const noexcept = 0;

    virtual size_t device_bytes() const noexcept = 0;
};

using work_list_ref = std::shared_ptr<work_list>;

// False: a kernel can take the layout's own view as it is.
inline bool needs_tables(const layout &what) noexcept {
    return what.view().num_blocks > 1;
}

// Prepares and enqueues `work` on `on`; `work.layout` need not be set. One launch where the tables
// are in GPU memory; else several of growing size, each behind the upload of the tables that it
// needs, so that the first runs while the CPU prepares the next.
ucs_status_t launch(work_list &list, gpu::stream &on, gpu::transfer work) noexcept;

struct cache_statistics {
    uint64_t hits = 0, misses = 0, evictions = 0;
    uint64_t lists = 0;        // kept now
    uint64_t bytes = 0;        // in GPU memory now
    uint64_t bytes_moved = 0;  // over the bus since the start
};

// The work list of `source` on `where`, from the cache or new. A list in use outlives its eviction.
// A layout without tables gets a list that costs nothing and is not counted. UCS_ERR_NO_MEMORY: the
// caller moves the bytes through host memory.
ucs_status_t acquire(gpu::device &where, const layout_ref &source, work_list_ref *list_p) noexcept;

cache_statistics statistics(gpu::device &where) noexcept;

// Releases every list not in use, and the GPU memory that it had; for tests and for a device short
// of memory.
void trim(gpu::device &where) noexcept;

}  // namespace cuda_nc::worklist
