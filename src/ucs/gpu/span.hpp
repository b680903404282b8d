// Memory that an application made of several pieces (cuMemCreate) behind each other.
#pragma once

#include "ucs/gpu/device.hpp"

namespace cuda_nc::gpu {

// `first`, which the platform gave for GPU `device`, where it holds [begin, end); else the pieces
// that hold those bytes together, taken as one allocation. Its id is made of theirs. id 0: there
// are none, or more than others can be given. Asks the platform once for each piece.
allocation_info find_span(int device, const allocation_info &first, uintptr_t begin,
                          uintptr_t end) noexcept;

}  // namespace cuda_nc::gpu
