#include "ucp/dt/ucp_api.hpp"

#include <mutex>

namespace cuda_nc::dt {
namespace {

// UCX before 1.10 may lack one.
template <typename function>
void look_up(const ucx_instance &ucx, const char *symbol, function *function_p) {
    *function_p = reinterpret_cast<function>(ucx.find(symbol));
}

}  // namespace

std::array<std::atomic<const ucp_api *>, max_ucx_instances> ucp_apis;

const ucp_api &look_up_ucp(const ucx_instance &ucx) noexcept {
    static std::array<ucp_api, max_ucx_instances> all;
    static std::array<std::once_flag, max_ucx_instances> once;
    ucp_api &found = all[ucx.index];
    std::call_once(once[ucx.index], [&] {
        look_up(ucx, "ucp_dt_create_generic", &found.dt_create_generic);
        look_up(ucx, "ucp_dt_destroy", &found.dt_destroy);
        look_up(ucx, "ucp_tag_send_nbx", &found.tag_send_nbx);
        look_up(ucx, "ucp_tag_send_sync_nbx", &found.tag_send_sync_nbx);
        look_up(ucx, "ucp_tag_recv_nbx", &found.tag_recv_nbx);
        look_up(ucx, "ucp_tag_msg_recv_nbx", &found.tag_msg_recv_nbx);
        look_up(ucx, "ucp_am_send_nbx", &found.am_send_nbx);
        look_up(ucx, "ucp_am_recv_data_nbx", &found.am_recv_data_nbx);
        look_up(ucx, "ucp_request_cancel", &found.request_cancel);
        look_up(ucx, "ucp_request_check_status", &found.request_check_status);
        look_up(ucx, "ucp_worker_create", &found.worker_create);
        look_up(ucx, "ucp_worker_progress", &found.worker_progress);
        look_up(ucx, "ucp_worker_query", &found.worker_query);
        look_up(ucx, "ucp_put_nbx", &found.put_nbx);
        look_up(ucx, "ucp_get_nbx", &found.get_nbx);
        look_up(ucx, "ucp_ep_create", &found.ep_create);
        look_up(ucx, "ucp_ep_flush_nbx", &found.ep_flush_nbx);
        look_up(ucx, "ucp_request_free", &found.request_free);
        look_up(ucx, "ucp_ep_query", &found.ep_query);
        look_up(ucx, "ucp_context_query", &found.context_query);
        ucp_apis[ucx.index].store(&found, std::memory_order_release);
        ucx_cache::keep_for_only(ucx, &found);
    });
    return found;
}

}  // namespace cuda_nc::dt
