// Sends of derived datatypes: makes UCP choose well between eager and rendezvous for those that the
// transport cuda_nc can move from GPU to GPU (uct/cuda_nc/selection.hpp), and gives it a datatype
// of ours in place of a list of buffers in GPU memory, and of contiguous GPU memory that UCX moves
// through the host, or of which a short MPI_Send would wait for its receiver.
//
// Same contracts as UCP's functions of these names, which they call, of the UCX that the endpoint
// belongs to, or that `caller` uses where that is not known (ucp/dt/worker_homes.hpp): an address
// in the code that calls, or null. What leaves those by unwinding (passed_call.hpp) leaves these.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hooks/common/contiguous.hpp"
#include "hooks/common/passed_call.hpp"

namespace cuda_nc::hooks {

// Where the datatype is derived, or much contiguous memory is sent, or the caller does not tell
// which UCX is meant.
namespace looked_at {

void *tag_send_nbx(void *ep, const void *buffer, size_t count, uint64_t tag, const void *param,
                   const void *caller);
void *tag_send_sync_nbx(void *ep, const void *buffer, size_t count, uint64_t tag, const void *param,
                        const void *caller);
void *am_send_nbx(void *ep, unsigned id, const void *header, size_t header_length,
                  const void *buffer, size_t count, const void *param, const void *caller);

}  // namespace looked_at

inline bool may_be_ours(const ucp_request_param_t &param, size_t count) noexcept {
    return is_derived(param) || is_long_contiguous(param, count);
}

inline void *tag_send_nbx(void *ep, const void *buffer, size_t count, uint64_t tag,
                          const void *param, const void *caller) {
    const auto *given = static_cast<const ucp_request_param_t *>(param);
    static call_site first;
    const dt::ucp_api *ucp = known_ucp_of(first, caller);
    return CUDA_NC_LIKELY(ucp != nullptr && !may_be_ours(*given, count) &&
                          !is_short_buffered(*given, buffer, count))
               ? ucp->tag_send_nbx(static_cast<ucp_ep_h>(ep), buffer, count, tag, given)
               : looked_at::tag_send_nbx(ep, buffer, count, tag, param, caller);
}

inline void *tag_send_sync_nbx(void *ep, const void *buffer, size_t count, uint64_t tag,
                               const void *param, const void *caller) {
    const auto *given = static_cast<const ucp_request_param_t *>(param);
    static call_site first;
    const dt::ucp_api *ucp = known_ucp_of(first, caller);
    return CUDA_NC_LIKELY(ucp != nullptr && !may_be_ours(*given, count))
               ? ucp->tag_send_sync_nbx(static_cast<ucp_ep_h>(ep), buffer, count, tag, given)
               : looked_at::tag_send_sync_nbx(ep, buffer, count, tag, param, caller);
}

inline void *am_send_nbx(void *ep, unsigned id, const void *header, size_t header_length,
                         const void *buffer, size_t count, const void *param, const void *caller) {
    const auto *given = static_cast<const ucp_request_param_t *>(param);
    static call_site first;
    const dt::ucp_api *ucp = known_ucp_of(first, caller);
    return CUDA_NC_LIKELY(ucp != nullptr && !may_be_ours(*given, count))
               ? ucp->am_send_nbx(static_cast<ucp_ep_h>(ep), id, header, header_length, buffer,
                                  count, given)
               : looked_at::am_send_nbx(ep, id, header, header_length, buffer, count, param,
                                        caller);
}

}  // namespace cuda_nc::hooks
