#include "hooks/common/workers.hpp"

#include <ucp/api/ucp.h>

#include <atomic>

#include "hooks/common/request_cancel.hpp"
#include "ucp/dt/ucp_api.hpp"
#include "ucp/dt/worker_homes.hpp"
#include "uct/cuda_nc/turns.hpp"

namespace cuda_nc::hooks {
namespace {

std::atomic<progress_redirection> redirection{nullptr};
std::atomic<const ucx_instance *> redirected_ucx{nullptr};

// What UCX gives, which may be less than what was asked for: then the program has a lock of its
// own.
bool is_for_many_threads(const dt::ucp_api &ucp, ucp_worker_h worker) {
    ucp_worker_attr_t attributes = {};
    attributes.field_mask = UCP_WORKER_ATTR_FIELD_THREAD_MODE;
    return ucp.worker_query != nullptr && ucp.worker_query(worker, &attributes) == UCS_OK &&
           attributes.thread_mode == UCS_THREAD_MODE_MULTI;
}

void give_turns(const caller_ucx &found, const void *caller, ucp_worker_h worker,
                uint64_t turns_before) {
    const progress_redirection redirect = redirection;
    if (redirect == nullptr || !found.is_certain() ||
        uct::worker_turns::number_opened() == turns_before ||
        !is_for_many_threads(dt::ucp_of(*found.ucx), worker)) {
        return;
    }
    const ucx_instance *nobody = nullptr;
    if ((redirected_ucx.compare_exchange_strong(nobody, found.ucx) || nobody == found.ucx) &&
        uct::worker_turns::give(worker, turns_before)) {
        redirect(caller);
    }
}

}  // namespace

void set_progress_redirection(progress_redirection redirect) noexcept {
    redirection = redirect;
}

int8_t worker_create(void *context, const void *params, void **worker_p, const void *caller) {
    const caller_ucx found = ucx_of(caller);
    if (found.ucx == nullptr) {
        return UCS_ERR_UNSUPPORTED;
    }
    auto *of = static_cast<ucp_context_h>(context);
    if (found.is_certain()) {
        learn_request_size(*found.ucx, of);
    }
    const uint64_t turns_before = uct::worker_turns::number_opened();
    auto *made_p = reinterpret_cast<ucp_worker_h *>(worker_p);
    const ucs_status_t status =
        dt::ucp_of(*found.ucx)
            .worker_create(of, static_cast<const ucp_worker_params_t *>(params), made_p);
    if (status == UCS_OK) {
        dt::keep_home(*made_p, *found.ucx);
        give_turns(found, caller, *made_p, turns_before);
    }
    return static_cast<int8_t>(status);
}

unsigned worker_progress(void *worker) {
    uct::worker_turns *its = uct::worker_turns::of(worker);
    const bool waited = its != nullptr && its->await();
    const dt::ucp_api &ucp = dt::ucp_of(*redirected_ucx.load(std::memory_order_acquire));
    const unsigned happened = ucp.worker_progress(static_cast<ucp_worker_h>(worker));
    if (waited && happened != 0) {
        its->go_on();
    }
    return happened;
}

}  // namespace cuda_nc::hooks
