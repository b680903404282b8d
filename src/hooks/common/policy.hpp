// Which path a message takes.
#pragma once

#include "hooks/open_mpi/open_mpi.hpp"
#include "ucs/gpu/device.hpp"
#include "ucs/layout/layout.hpp"

namespace cuda_nc::hooks {

struct choice {
    bool engine;      // else the original operations
    const char *why;  // a short text for the statistics
};

// For `what` in host memory; the same whenever it is asked.
choice choose_for_host(const layout &what, const open_mpi &api) noexcept;

// For a buffer in memory of the given kind; `on_host` is what choose_for_host() says. An unknown
// kind is warned of, once.
choice choose_path(const gpu::memory_info &info, const choice &on_host) noexcept;

// To be called where a message is found to lie in GPU memory: warns once where UCX itself cannot
// recognise such memory, because then it crashes on contiguous messages, which never reach us.
void check_gpu_detection() noexcept;

// The library by which UCX recognises GPU memory and that is not loaded, or null.
const char *missing_for_detection() noexcept;

}  // namespace cuda_nc::hooks
