// The UCX of this process, as far as the hooks need it.
#pragma once

#include <ucp/api/ucp.h>

namespace cuda_nc::hooks {

struct ucp_api {
    ucs_status_t (*dt_create_generic)(const ucp_generic_dt_ops_t *, void *, ucp_datatype_t *);
    void (*dt_destroy)(ucp_datatype_t);
    ucs_status_ptr_t (*tag_send_nbx)(ucp_ep_h, const void *, size_t, ucp_tag_t,
                                     const ucp_request_param_t *);
    unsigned major, minor, release;

    bool at_least(unsigned wanted_major, unsigned wanted_minor) const noexcept {
        return major > wanted_major || (major == wanted_major && minor >= wanted_minor);
    }
};

// Null while no libucp is loaded; else lives as long as the process. Looked up through the handle
// of libucp: that finds one that was loaded RTLD_LOCAL, and never our own definitions. Thread safe.
const ucp_api *find_ucp() noexcept;

}  // namespace cuda_nc::hooks
