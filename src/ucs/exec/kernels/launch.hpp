// Launches the CUDA kernels; callable from C++ code.
#pragma once

#include "ucs/exec/kernels/loaded_kernels.hpp"
#include "ucs/exec/kernels/plan/policy.hpp"
#include "ucs/gpu/device.hpp"

namespace cuda_nc::exec {

// Enqueues `work` on `stream` of the current device, one kernel for each GiB. Sets work.ends->count
// where work.ends is not null. Never synchronises or allocates.
cudaError_t launch_transfer(const loaded_kernels &kernels, const gpu::transfer &work,
                            const kernel_limits &limits, cudaStream_t stream) noexcept;

// Enqueues the first *launched_p of `number` sides of pipes by one launch: as many as one kernel
// serves. cudaErrorNotSupported: no kernel serves the layouts of the first side.
cudaError_t launch_pipes(const loaded_kernels &kernels, const gpu::pipe_work *sides, size_t number,
                         cudaStream_t stream, size_t *launched_p) noexcept;

// Load the kernels of launch_transfer() and of launch_pipes() on the current device. Failures are
// in to->error().
void load_kernels(loaded_kernels *to) noexcept;
void load_pipe_kernels(loaded_kernels *to) noexcept;

// Whether kernel_limits::starts_early may be set for the current device: the kernels of
// launch_transfer() that were built for it wait for the kernel before them on their stream.
bool kernels_await_predecessors() noexcept;

}  // namespace cuda_nc::exec
