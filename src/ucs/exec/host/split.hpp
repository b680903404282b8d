// Splits a long call among the threads of the pool.
//
// A call is cut into ranges of packed bytes. These are disjoint, so packing may always be split.
// Unpacking and copying may be split only where no two blocks overlap, because the last of
// overlapping blocks in type-map order must win.
#pragma once

#include <atomic>
#include <cstdint>

#include "ucs/base/compiler.hpp"
#include "ucs/exec/host/host_kernels.hpp"
#include "ucs/layout/layout_view.hpp"

namespace cuda_nc::exec {

// Bytes of the shortest call that may be split; 0: the setting was not read yet; 2^64 - 1: no
// threads are asked for.
extern std::atomic<uint64_t> split_from;

inline bool may_split(uint64_t length) noexcept {
    return CUDA_NC_UNLIKELY(length >= split_from.load(std::memory_order_relaxed));
}

// As walk<Dir>::move() after its constructor. False, with nothing moved, where the calling thread
// must do it alone.
template <direction Dir>
bool move_split(const layout_view &view, address laid, address laid_target, uint64_t packed_offset,
                address packed, uint64_t length) noexcept;

// Most threads for a call of this thread, itself included: as UCX_CUDA_NC_HOST_THREADS says, but no
// more than the processors it may run on.
unsigned max_host_threads() noexcept;

// For tests: splits calls of at least `least_bytes` a thread, on as many threads as the setting
// says, whatever the number of processors. 0: as usual. Reads the setting again. Not thread safe.
void reload_split_for_test(uint64_t least_bytes) noexcept;

}  // namespace cuda_nc::exec
