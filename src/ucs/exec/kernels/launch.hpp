// Launches the CUDA kernels; callable from C++ code.
#pragma once

#include "ucs/exec/kernels/loaded_kernels.hpp"
#include "ucs/exec/kernels/plan/policy.hpp"
#include "ucs/gpu/device.hpp"

namespace cuda_nc::exec {

// Enqueues `work` on `stream` of the current device, one kernel for each GiB. Sets work.ends->count
// where work.ends is not null. Allocates
// nothing; a kernel that is launched for the first time is loaded.
cudaError_t launch_transfer(loaded_kernels &kernels, const gpu::transfer &work,
                            const kernel_limits &limits, cudaStream_t stream) noexcept;

// Enqueues the first *launched_p of `number` sides of pipes by one launch: as many as one kernel
// serves. cudaErrorNotSupported: no kernel serves the layouts of the first side.
cudaError_t launch_pipes(loaded_kernels &kernels, const gpu::pipe_work *sides, size_t number,
                         const kernel_limits &limits, cudaStream_t stream,
                         size_t *launched_p) noexcept;

// Enqueues `list`, which is not empty. Sets list.ends->count where list.ends is not null.
cudaError_t launch_pairs(loaded_kernels &kernels, const gpu::pair_list &list,
                         const kernel_limits &limits, cudaStream_t stream) noexcept;

// Loads one kernel on the current device: whether this build has kernels for it.
cudaError_t load_first_kernel(loaded_kernels &to) noexcept;

// Whether kernel_limits::starts_early may be set for the current device: the kernels of
// launch_transfer() and launch_pairs() that were built for it wait for the kernel before them on
// their stream.
bool kernels_await_predecessors() noexcept;

}  // namespace cuda_nc::exec
