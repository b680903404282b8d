// Interposed calls of UCP that send or receive: which of the process's copies of UCX they go to.
#pragma once

#include <ucp/api/ucp.h>

#include <cstdint>

#include "ucp/dt/ucp_api.hpp"
#include "ucs/base/compiler.hpp"
#include "ucs/base/ucx_instance.hpp"

namespace cuda_nc::hooks {

inline bool has_datatype(const ucp_request_param_t &param, ucp_datatype_t of_class) noexcept {
    return (param.op_attr_mask & UCP_OP_ATTR_FIELD_DATATYPE) != 0 &&
           (param.datatype & UCP_DATATYPE_CLASS_MASK) == of_class;
}

// The caller's UCX is not known yet, or remains unknown: then the call passes unchanged.
template <typename serving, typename passing>
__attribute__((noinline)) void *find_and_call(const void *caller, const serving &serve,
                                              const passing &pass) noexcept {
    const caller_ucx found = ucx_of(caller);
    if (found.ucx == nullptr) {
        return reinterpret_cast<void *>(static_cast<intptr_t>(UCS_ERR_UNSUPPORTED));
    }
    return found.is_certain() ? serve(*found.ucx) : pass(dt::ucp_of(*found.ucx));
}

// serve(ucx), with the UCX that `caller` uses. In doubt pass(ucp), with the functions of one of
// several.
template <typename serving, typename passing>
inline void *call_by(const void *caller, const serving &serve, const passing &pass) noexcept {
    const ucx_instance *ucx = known_ucx_of(caller);
    return CUDA_NC_LIKELY(ucx != nullptr) ? serve(*ucx) : find_and_call(caller, serve, pass);
}

}  // namespace cuda_nc::hooks
