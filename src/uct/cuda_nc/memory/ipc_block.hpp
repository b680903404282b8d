// GPU memory that is exported to other processes.
#pragma once

#include <cstddef>

#include "ucs/base/bits.hpp"

namespace cuda_nc::uct {

// CUDA shares memory between processes by blocks of so many bytes, and a process opens a block
// once. An allocation that is exported fills whole ones: else a peer that has opened it could not
// open what else lies there, the user's contiguous buffers, which UCX opens by itself.
constexpr size_t ipc_block = size_t(2) << 20;

constexpr size_t in_ipc_blocks(size_t size) noexcept {
    return round_up(size, ipc_block);
}

}  // namespace cuda_nc::uct
