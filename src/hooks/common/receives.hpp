// Receives into lists of buffers in GPU memory: UCP is given a datatype of ours in place of the
// list.
//
// Same contracts as UCP's functions of these names, which they call, of the UCX that the worker
// belongs to, or that `caller` uses where that is not known (ucp/dt/worker_homes.hpp): an address
// in the code that calls, or null. What leaves those by unwinding (passed_call.hpp) leaves these.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hooks/common/passed_call.hpp"

namespace cuda_nc::hooks {

// Where the buffer is a list, or the caller does not tell which UCX is meant.
namespace looked_at {

void *tag_recv_nbx(void *worker, void *buffer, size_t count, uint64_t tag, uint64_t tag_mask,
                   const void *param, const void *caller);
void *tag_msg_recv_nbx(void *worker, void *buffer, size_t count, void *message, const void *param,
                       const void *caller);
void *am_recv_data_nbx(void *worker, void *data, void *buffer, size_t count, const void *param,
                       const void *caller);

}  // namespace looked_at

inline void *tag_recv_nbx(void *worker, void *buffer, size_t count, uint64_t tag, uint64_t tag_mask,
                          const void *param, const void *caller) {
    const auto *given = static_cast<const ucp_request_param_t *>(param);
    static call_site first;
    const dt::ucp_api *ucp = known_ucp_of(first, caller);
    return CUDA_NC_LIKELY(ucp != nullptr && !has_datatype(*given, UCP_DATATYPE_IOV))
               ? ucp->tag_recv_nbx(static_cast<ucp_worker_h>(worker), buffer, count, tag, tag_mask,
                                   given)
               : looked_at::tag_recv_nbx(worker, buffer, count, tag, tag_mask, param, caller);
}

inline void *tag_msg_recv_nbx(void *worker, void *buffer, size_t count, void *message,
                              const void *param, const void *caller) {
    const auto *given = static_cast<const ucp_request_param_t *>(param);
    static call_site first;
    const dt::ucp_api *ucp = known_ucp_of(first, caller);
    return CUDA_NC_LIKELY(ucp != nullptr && !has_datatype(*given, UCP_DATATYPE_IOV))
               ? ucp->tag_msg_recv_nbx(static_cast<ucp_worker_h>(worker), buffer, count,
                                       static_cast<ucp_tag_message_h>(message), given)
               : looked_at::tag_msg_recv_nbx(worker, buffer, count, message, param, caller);
}

inline void *am_recv_data_nbx(void *worker, void *data, void *buffer, size_t count,
                              const void *param, const void *caller) {
    const auto *given = static_cast<const ucp_request_param_t *>(param);
    static call_site first;
    const dt::ucp_api *ucp = known_ucp_of(first, caller);
    return CUDA_NC_LIKELY(ucp != nullptr && !has_datatype(*given, UCP_DATATYPE_IOV))
               ? ucp->am_recv_data_nbx(static_cast<ucp_worker_h>(worker), data, buffer, count,
                                       given)
               : looked_at::am_recv_data_nbx(worker, data, buffer, count, param, caller);
}

}  // namespace cuda_nc::hooks
