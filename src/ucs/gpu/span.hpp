// Ranges of GPU memory, also where an application made them of several pieces (cuMemCreate) behind
// each other.
#pragma once

#include "ucs/gpu/device.hpp"

namespace cuda_nc::gpu {

// `first`, which the platform gave for GPU `device`, where it holds [begin, end); else the pieces
// that hold those bytes together, taken as one allocation. Its id is made of theirs. id 0: there
// are none, or more than others can be given. Asks the platform once for each piece.
allocation_info find_span(int device, const allocation_info &first, uintptr_t begin,
                          uintptr_t end) noexcept;

// Whether a launch that reaches `first`, where `begin` lies, reaches the last byte of [begin, end)
// as well. Asks the platform only where the allocation does not tell.
bool reaches_end(const memory_info &first, uintptr_t begin, uintptr_t end) noexcept;

}  // namespace cuda_nc::gpu
