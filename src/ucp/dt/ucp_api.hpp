// The functions of UCP that we call, looked up in each UCX instance and never linked.
#pragma once

#include <ucp/api/ucp.h>

#include "ucs/base/ucx_instance.hpp"

namespace cuda_nc::dt {

struct ucp_api {
    ucs_status_t (*dt_create_generic)(const ucp_generic_dt_ops_t *, void *, ucp_datatype_t *);
    void (*dt_destroy)(ucp_datatype_t);
    ucs_status_ptr_t (*tag_send_nbx)(ucp_ep_h, const void *, size_t, ucp_tag_t,
                                     const ucp_request_param_t *);
    ucs_status_ptr_t (*tag_send_sync_nbx)(ucp_ep_h, const void *, size_t, ucp_tag_t,
                                          const ucp_request_param_t *);
    ucs_status_ptr_t (*tag_recv_nbx)(ucp_worker_h, void *, size_t, ucp_tag_t, ucp_tag_t,
                                     const ucp_request_param_t *);
    ucs_status_ptr_t (*tag_msg_recv_nbx)(ucp_worker_h, void *, size_t, ucp_tag_message_h,
                                         const ucp_request_param_t *);
    ucs_status_ptr_t (*am_send_nbx)(ucp_ep_h, unsigned, const void *, size_t, const void *, size_t,
                                    const ucp_request_param_t *);
    ucs_status_ptr_t (*am_recv_data_nbx)(ucp_worker_h, void *, void *, size_t,
                                         const ucp_request_param_t *);
    void (*request_cancel)(ucp_worker_h, void *);
    ucs_status_t (*request_check_status)(void *);
    ucs_status_t (*worker_create)(ucp_context_h, const ucp_worker_params_t *, ucp_worker_h *);
    unsigned (*worker_progress)(ucp_worker_h);
    ucs_status_t (*worker_query)(ucp_worker_h, ucp_worker_attr_t *);
    ucs_status_ptr_t (*put_nbx)(ucp_ep_h, const void *, size_t, uint64_t, ucp_rkey_h,
                                const ucp_request_param_t *);
    ucs_status_ptr_t (*get_nbx)(ucp_ep_h, void *, size_t, uint64_t, ucp_rkey_h,
                                const ucp_request_param_t *);
    ucs_status_t (*ep_create)(ucp_worker_h, const ucp_ep_params_t *, ucp_ep_h *);
    ucs_status_ptr_t (*ep_flush_nbx)(ucp_ep_h, const ucp_request_param_t *);
    void (*request_free)(void *);
    ucs_status_t (*ep_query)(ucp_ep_h, ucp_ep_attr_t *);
    ucs_status_t (*context_query)(ucp_context_h, ucp_context_attr_t *);
};

// By the instance's index; null: not looked up yet.
extern std::array<std::atomic<const ucp_api *>, max_ucx_instances> ucp_apis;

const ucp_api &look_up_ucp(const ucx_instance &ucx) noexcept;

// UCX's own definitions, and never our hooks. Lives as long as the process. Thread safe.
inline const ucp_api &ucp_of(const ucx_instance &ucx) noexcept {
    const ucp_api *known = ucp_apis[ucx.index].load(std::memory_order_acquire);
    return CUDA_NC_LIKELY(known != nullptr) ? *known : look_up_ucp(ucx);
}

}  // namespace cuda_nc::dt
