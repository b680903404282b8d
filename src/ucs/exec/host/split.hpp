// Shares a long call among the threads of the pool.
//
// A call is cut in ranges of packed bytes. Packed ranges are disjoint, so packing may always be
// shared; unpacking and copying only where no two blocks overlap, because of overlapping ones the
// last in type-map order must win.
#pragma once

#include <atomic>
#include <cstdint>

#include "ucs/base/compiler.hpp"
#include "ucs/exec/host/host_kernels.hpp"
#include "ucs/layout/layout_view.hpp"

namespace cuda_nc::exec {

// Bytes of the shortest call that may be shared; 0 before the setting was read, 2^64 - 1 where no
// threads are asked for.
extern std::atomic<uint64_t> split_from;

inline bool may_split(uint64_t length) noexcept {
    return CUDA_NC_UNLIKELY(length >= split_from.load(std::memory_order_relaxed));
}

// As walk<Way>::move() after its constructor. False, with nothing moved, where the calling thread
// must do it alone.
template <way Way>
bool move_split(const layout_view &view, address laid, address laid_target, uint64_t packed_offset,
                address packed, uint64_t length) noexcept;

// Threads that may share a call of this thread, itself included: as many as
// UCX_CUDA_NC_HOST_THREADS asks for and processors it may run on. 1: no others.
unsigned max_host_threads() noexcept;

// For tests: parts of at least `least_bytes` a thread instead of what pays; as many threads as
// asked for, whatever the processors. Least 0: as usual. Reads the setting again. Not thread safe.
void reload_split_for_test(uint64_t least_bytes) noexcept;

}  // namespace cuda_nc::exec
