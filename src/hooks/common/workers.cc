#include "hooks/common/workers.hpp"

#include <ucp/api/ucp.h>

#include <atomic>

#include "hooks/common/request_cancel.hpp"
#include "ucp/dt/ucp_api.hpp"
#include "uct/cuda_nc/turns.hpp"

namespace cuda_nc::hooks {
namespace {

std::atomic<progress_redirection> redirection{nullptr};

bool is_for_many_threads(const ucp_worker_params_t *params) noexcept {
    return params != nullptr && (params->field_mask & UCP_WORKER_PARAM_FIELD_THREAD_MODE) != 0 &&
           params->thread_mode == UCS_THREAD_MODE_MULTI;
}

}  // namespace

void set_progress_redirection(progress_redirection redirect) noexcept {
    redirection = redirect;
}

int8_t worker_create(void *context, const void *params, void **worker_p,
                     const void *caller) noexcept {
    const caller_ucx found = ucx_of(caller);
    if (found.ucx == nullptr) {
        return UCS_ERR_UNSUPPORTED;
    }
    auto *of = static_cast<ucp_context_h>(context);
    const auto *given = static_cast<const ucp_worker_params_t *>(params);
    if (found.is_certain()) {
        learn_request_size(*found.ucx, of);
    }
    const uint64_t turns_before = uct::worker_turns::number_opened();
    const ucs_status_t status =
        dt::ucp_of(*found.ucx).worker_create(of, given, reinterpret_cast<ucp_worker_h *>(worker_p));
    const progress_redirection redirect = redirection;
    if (status == UCS_OK && found.is_certain() && redirect != nullptr &&
        is_for_many_threads(given) && uct::worker_turns::give(*worker_p, turns_before)) {
        redirect(*found.ucx);
    }
    return static_cast<int8_t>(status);
}

unsigned worker_progress(void *worker, const void *caller) noexcept {
    if (uct::worker_turns *its = uct::worker_turns::of(worker)) {
        its->await();
    }
    auto *of = static_cast<ucp_worker_h>(worker);
    const dt::ucp_api *known = dt::known_ucp_of(caller);
    if (CUDA_NC_LIKELY(known != nullptr)) {
        return known->worker_progress(of);
    }
    const caller_ucx found = ucx_of(caller);
    return found.ucx != nullptr ? dt::ucp_of(*found.ucx).worker_progress(of) : 0;
}

}  // namespace cuda_nc::hooks
