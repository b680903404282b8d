// Messages of contiguous GPU memory that go as a datatype of ours, of one block:
// - Long ones of memory that processes cannot share: that of cudaMallocAsync, and managed memory.
//   UCX moves it through host memory in pieces: 16 MiB take 30 times as long as our pipes need
//   (bench/results/2026-11-25-h100x2-kinds.md).
// - Short ones of MPI_Send, which are not to wait for their receiver (uct::most_buffered).
#pragma once

#include <ucp/api/ucp.h>

#include <cstdint>

#include "hooks/common/passed_call.hpp"
#include "hooks/common/remembered.hpp"
#include "hooks/common/thread_context.hpp"
#include "ucs/gpu/known_memory.hpp"
#include "uct/cuda_nc/selection.hpp"

namespace cuda_nc::hooks {

// 0 where the datatype is not contiguous.
inline uint64_t contiguous_bytes(const ucp_request_param_t &param, size_t count) noexcept {
    if ((param.op_attr_mask & UCP_OP_ATTR_FIELD_DATATYPE) == 0) {
        return count;
    }
    return (param.datatype & UCP_DATATYPE_CLASS_MASK) == UCP_DATATYPE_CONTIG
               ? count * (param.datatype >> UCP_DATATYPE_SHIFT)
               : 0;
}

// Whether is_better_ours() is worth a call: a nanosecond for all messages.
inline bool is_long_contiguous(const ucp_request_param_t &param, size_t count) noexcept {
    return contiguous_bytes(param, count) >= uct::least_contiguous.load(std::memory_order_relaxed);
}

// Whether a send should be done with its buffer before its receiver is there: MPI_Send.
inline bool should_be_buffered(uint32_t op_attr_mask) noexcept {
    return (op_attr_mask & UCP_OP_ATTR_FLAG_FAST_CMPL) != 0 || buffered_send_scope::is_current();
}

// Blocks of addresses that were host memory when last asked: what a short MPI_Send from host memory
// pays, for the most part. The driver keeps the addresses that it gives GPU memory to itself, so a
// block hardly ever becomes a GPU's.
inline remembered<21> blocks_on_host;

// Whether is_to_be_buffered() is worth a call.
inline bool is_short_buffered(const ucp_request_param_t &param, const void *buffer,
                              size_t count) noexcept {
    return contiguous_bytes(param, count) - 1 <  // of 0 bytes: never
               uct::most_buffered.load(std::memory_order_relaxed) &&
           should_be_buffered(param.op_attr_mask) && !blocks_on_host.hold(buffer);
}

// Whether UCX can be given contiguous GPU memory, to send or receive, of any length: it recognises
// such memory. That of a simulated GPU it cannot touch; there all such messages must be ours.
bool ucx_takes_gpu_memory() noexcept;

// Whether `buffer` lies in memory of a GPU that the UCX `ucx` cannot let other processes have
// (UCX_CUDA_NC_CONTIGUOUS=y: in any). Thread safe.
bool is_memory_for_us(const ucx_instance &ucx, const void *buffer) noexcept;

// Whether contiguous bytes there, sent through `ep`, are to be ours: our transport also leads from
// `ep` to another process of this machine. Thread safe.
bool is_better_ours(const ucx_instance &ucx, ucp_ep_h ep, const void *buffer);

// Whether `buffer` lies in memory of a GPU, and `ep` leads to another process of this machine.
// Thread safe. `known` looks at the memory.
bool is_to_be_buffered(const ucx_instance &ucx, ucp_ep_h ep, const void *buffer,
                       gpu::known_memory *known);

}  // namespace cuda_nc::hooks
