#include "hooks/common/endpoints.hpp"

#include <ucp/api/ucp.h>

#include "ucp/dt/followed_send.hpp"
#include "ucp/dt/ucp_api.hpp"
#include "ucp/dt/worker_homes.hpp"

namespace cuda_nc::hooks {
namespace {

// An endpoint that answers a connection takes what the other side has asked for.
bool may_abort_sends(const ucp_ep_params_t &params) noexcept {
    return (params.field_mask & UCP_EP_PARAM_FIELD_CONN_REQUEST) != 0 ||
           ((params.field_mask & UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE) != 0 &&
            params.err_mode != UCP_ERR_HANDLING_MODE_NONE);
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
    if (status == UCS_OK) {
        dt::note_endpoint(*made_p, may_abort_sends(*given));
    }
    return static_cast<int8_t>(status);
}

}  // namespace cuda_nc::hooks
