#include "hooks/common/endpoints.hpp"

#include <ucp/api/ucp.h>

#include "ucp/dt/endpoint_sends.hpp"
#include "ucp/dt/ucp_api.hpp"
#include "ucp/dt/worker_homes.hpp"

namespace cuda_nc::hooks {
namespace {

// close(ucp) is the call of UCP. A forced close ends all sends before it returns (UCX 1.13 to
// 1.23), by calls of their callbacks; what it answers then is no request.
template <typename closing>
void *close_by(void *ep, bool by_force, const void *caller, const closing &close) {
    auto *closed = static_cast<ucp_ep_h>(ep);
    const caller_ucx found = dt::ucx_of_endpoint(closed, caller);
    if (found.ucx == nullptr) {
        return reinterpret_cast<void *>(static_cast<intptr_t>(UCS_ERR_UNSUPPORTED));
    }
    void *result = close(dt::ucp_of(*found.ucx), closed);
    if (by_force && result == nullptr) {
        dt::finish_sends(closed);
    }
    return result;
}

}  // namespace

int8_t ep_create(void *worker, const void *params, void **ep_p, const void *caller) {
    auto *its = static_cast<ucp_worker_h>(worker);
    const auto *given = static_cast<const ucp_ep_params_t *>(params);
    const caller_ucx found = dt::ucx_of_worker(its, caller);
    if (found.ucx == nullptr) {
        return UCS_ERR_UNSUPPORTED;
    }
    auto *made_p = reinterpret_cast<ucp_ep_h *>(ep_p);
    const ucs_status_t status = dt::ucp_of(*found.ucx).ep_create(its, given, made_p);
    if (status == UCS_OK && (given->field_mask & UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE) != 0 &&
        given->err_mode != UCP_ERR_HANDLING_MODE_NONE) {
        dt::watch_sends(*made_p);
    }
    return static_cast<int8_t>(status);
}

void *ep_close_nbx(void *ep, const void *param, const void *caller) {
    const auto *given = static_cast<const ucp_request_param_t *>(param);
    const bool by_force = (given->op_attr_mask & UCP_OP_ATTR_FIELD_FLAGS) != 0 &&
                          (given->flags & UCP_EP_CLOSE_FLAG_FORCE) != 0;
    return close_by(ep, by_force, caller, [=](const dt::ucp_api &ucp, ucp_ep_h closed) {
        return ucp.ep_close_nbx(closed, given);
    });
}

void *ep_close_nb(void *ep, unsigned mode, const void *caller) {
    return close_by(
        ep, mode == UCP_EP_CLOSE_MODE_FORCE, caller,
        [=](const dt::ucp_api &ucp, ucp_ep_h closed) { return ucp.ep_close_nb(closed, mode); });
}

}  // namespace cuda_nc::hooks
