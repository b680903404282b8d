// How a message is cut for a pipe or a pull.
#pragma once

#include <cstdint>

#include "ucs/gpu/box.hpp"
#include "ucs/gpu/pipe.hpp"

namespace cuda_nc::uct {

// For a message of `bytes` (1 or more), at most `channels` channels (1 or more) and a ring of at
// most `room` bytes. channels 0 in the result: the room is too small.
gpu::pipe_geometry choose_geometry(uint64_t bytes, unsigned channels, uint64_t room) noexcept;

// Whether another GPU's rows are pulled sooner by a copy engine than by a kernel; `source` and
// `target` hold displacement 0.
bool copy_pays(const gpu::box &rows, const char *source, const char *target) noexcept;

// Of a pull by a copy engine: it takes no channels from others, but the one that there must be.
gpu::pipe_geometry copy_geometry() noexcept;

}  // namespace cuda_nc::uct
