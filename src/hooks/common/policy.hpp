// Which messages we serve, and which are left to the MPI library's own operations.
#pragma once

#include "hooks/common/mpi_library.hpp"
#include "ucs/gpu/device.hpp"
#include "ucs/layout/layout.hpp"

namespace cuda_nc::hooks {

struct choice {
    bool serve;       // false: the MPI library's own operations run
    const char *why;  // a short text for the statistics; lives as long as the process
};

// For `what` in host memory; the same whenever it is asked.
choice choose_for_host(const layout &what, const mpi_library &library) noexcept;

// For a buffer in memory of the given kind; `on_host` is what choose_for_host() returned. The first
// message in memory of an unknown kind is warned of.
choice choose_path(const gpu::memory_info &info, const choice &on_host) noexcept;

// Call it where a message is found to lie in GPU memory. Warns once if UCX itself cannot recognise
// such memory: it then crashes on contiguous messages, which never reach us.
void check_gpu_detection() noexcept;

// The library by which UCX recognises GPU memory and that is not loaded, or null.
const char *missing_for_detection() noexcept;

}  // namespace cuda_nc::hooks
