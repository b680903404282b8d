// Where the bytes of a layout lie.
#pragma once

#include <cstdint>

#include "ucs/gpu/known_memory.hpp"
#include "ucs/layout/layout.hpp"

namespace cuda_nc::dt {

// Adds integers, not pointers: a base may be null (MPI_BOTTOM) or far from any byte of the layout.
inline char *displaced(const void *base, int64_t displacement) noexcept {
    return reinterpret_cast<char *>(reinterpret_cast<uintptr_t>(base) +
                                    static_cast<uintptr_t>(displacement));
}

// The memory that holds the layout's first byte; the whole message lies in memory of that kind.
inline gpu::memory_info memory_of(const layout &what, const void *base) noexcept {
    if (what.packed_size() == 0) {
        return {};
    }
    return gpu::known_memory::query(displaced(base, what.view().locate(0).displacement));
}

}  // namespace cuda_nc::dt
