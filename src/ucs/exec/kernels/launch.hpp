// The CUDA kernels, seen from C++: one call, one launch.
#pragma once

#include "ucs/exec/kernels/loaded_kernels.hpp"
#include "ucs/exec/kernels/plan/policy.hpp"
#include "ucs/gpu/device.hpp"

namespace cuda_nc::exec {

// Enqueues `work` on `stream` of the current device: one kernel for each GiB. Never synchronises,
// never allocates.
cudaError_t launch_transfer(const loaded_kernels &kernels, const gpu::transfer &work,
                            const kernel_limits &limits, cudaStream_t stream) noexcept;

// Enqueues sides of pipes by one launch: as many of the first as one kernel serves, *launched_p.
// cudaErrorNotSupported: the first has a layout that no pipe takes.
cudaError_t launch_pipes(const loaded_kernels &kernels, const gpu::pipe_work *sides, size_t number,
                         cudaStream_t stream, size_t *launched_p) noexcept;

// Load the kernels of launch_transfer(), or of launch_pipes().
void load_kernels(loaded_kernels *to) noexcept;
void load_pipe_kernels(loaded_kernels *to) noexcept;

// Whether, on the current device, the kernels of launch_transfer themselves wait for the work
// before them on their stream, so that kernel_limits::starts_early may be set.
bool kernels_await_predecessors() noexcept;

}  // namespace cuda_nc::exec
