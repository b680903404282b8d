// UCP's functions, looked up when a measurement needs them: the tools start without UCX.
#pragma once

#include <ucp/api/ucp.h>

namespace cuda_nc::tools {

#define CUDA_NC_UCP_FUNCTIONS(apply)                                                    \
    apply(ucp_get_version) apply(ucp_get_version_string) apply(ucp_init_version)        \
        apply(ucp_cleanup) apply(ucp_worker_create) apply(ucp_worker_destroy)           \
            apply(ucp_worker_get_address) apply(ucp_worker_release_address)             \
                apply(ucp_worker_progress) apply(ucp_ep_create) apply(ucp_ep_close_nbx) \
                    apply(ucp_tag_send_nbx) apply(ucp_tag_recv_nbx)                     \
                        apply(ucp_request_check_status) apply(ucp_request_free)

struct ucp_library {
#define CUDA_NC_DECLARE(name) decltype(&::name) name = nullptr;
    CUDA_NC_UCP_FUNCTIONS(CUDA_NC_DECLARE)
#undef CUDA_NC_DECLARE
    unsigned major = 0, minor = 0;                     // of the library, not of the headers
    decltype(&::ucp_ep_query) ucp_ep_query = nullptr;  // null where there is none
};

// Loads libucp.so.0 as the loader finds it. Throws run_error.
const ucp_library &load_ucp();

}  // namespace cuda_nc::tools
