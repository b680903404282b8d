// Streams and events of a GPU.
#pragma once

#include <memory>

#include "ucs/exec/kernels/launch.hpp"
#include "ucs/backend/cuda/context.hpp"
#include "ucs/gpu/device.hpp"

namespace cuda_nc::gpu::cuda {

// The context of `owner` must be current. Streams have the highest priority and do not synchronise
// with the default stream; events have no timestamps. A launch uses the rules that `where` has at
// that time.
ucs_status_t make_stream(primary_context &owner, const device &where,
                         const exec::kernel_limits &limits,
                         std::unique_ptr<stream> *stream_p) noexcept;
// UCS_ERR_INVALID_PARAM: of another context, or invalidated by a capture.
ucs_status_t borrow_stream(primary_context &owner, const device &where,
                           const exec::kernel_limits &limits, cudaStream_t handle,
                           std::unique_ptr<borrowed_stream> *stream_p) noexcept;
ucs_status_t make_event(primary_context &owner, std::unique_ptr<event> *event_p) noexcept;

}  // namespace cuda_nc::gpu::cuda
