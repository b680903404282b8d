// Moves bytes from the places of one layout to those of another, by launches on one stream.
#pragma once

#include <cstdint>

#include "ucs/gpu/device.hpp"

namespace cuda_nc::gpu {

// Packed byte i of the source becomes packed byte i of the target.
struct layout_move {
    const layout_view *source = nullptr;  // tables in memory that the device reaches
    const layout_view *target = nullptr;
    const char *source_base = nullptr;  // displacement 0
    char *target_base = nullptr;
    bool alike = false;     // both have the same bytes in the same order: `source` is not looked at
    bool is_local = false;  // both are of the GPU that moves them: no link to another is in the way
    unsigned max_sms = 0;   // as in transfer
};

// Enqueues all of it, which needs no memory and no words of its own: a graph may repeat it. The
// packed sizes are equal. After an error some of it may run.
ucs_status_t launch(stream &on, const layout_move &work) noexcept;

// How a pull of `bytes` (1 or more) is cut among at most `channels` channels (1 or more).
// `lone_list`: of a list of blocks, on one side or both, and alone on its GPU.
pipe_geometry choose_pull_geometry(uint64_t bytes, unsigned channels, bool lone_list) noexcept;

}  // namespace cuda_nc::gpu
