// Interposed calls of UCP that send or receive: which of the process's copies of UCX they go to,
// and which of them are to be looked at. What all others pay is a nanosecond or two.
#pragma once

#include <ucp/api/ucp.h>

#include <atomic>
#include <cstdint>

#include "ucp/dt/ucp_api.hpp"
#include "ucp/dt/worker_homes.hpp"
#include "ucs/base/compiler.hpp"
#include "ucs/base/ucx_instance.hpp"

namespace cuda_nc::hooks {

inline bool has_datatype(const ucp_request_param_t &param, ucp_datatype_t of_class) noexcept {
    return (param.op_attr_mask & UCP_OP_ATTR_FIELD_DATATYPE) != 0 &&
           (param.datatype & UCP_DATATYPE_CLASS_MASK) == of_class;
}

// A list or a generic datatype.
inline bool is_derived(const ucp_request_param_t &param) noexcept {
    constexpr ucp_datatype_t both = UCP_DATATYPE_IOV & UCP_DATATYPE_GENERIC;
    static_assert((UCP_DATATYPE_CONTIG & both) == 0 && (UCP_DATATYPE_STRIDED & both) == 0);
    return (param.op_attr_mask & UCP_OP_ATTR_FIELD_DATATYPE) != 0 && (param.datatype & both) != 0;
}

// A thread may be cancelled in UCP's functions, and a program's callback may throw through them:
// what calls them is not noexcept, and its scopes end.

// Where a hook was called from first: most of its calls come from there. Written once, as threads
// that call from other places would else take it from each other.
struct call_site {
    std::atomic<uint64_t> page{0};  // as ucx_cache::page_key(); 0: none
};

// The functions of the UCX that `caller` uses, where they are known and there is no other; else
// null. `first`: of the hook.
inline const dt::ucp_api *known_ucp_of(call_site &first, const void *caller) noexcept {
    const uint64_t page = ucx_cache::page_key(caller);
    const uint64_t known = first.page.load(std::memory_order_acquire);
    if (CUDA_NC_UNLIKELY(known != page)) {
        if (ucx_cache::answers.find(page) < 0) {
            return nullptr;
        }
        if (known == 0) {
            first.page.store(page, std::memory_order_release);
        }
    }
    // Behind the page: who sees that of another UCX sees that there are two.
    return static_cast<const dt::ucp_api *>(
        ucx_cache::kept_for_only.load(std::memory_order_acquire));
}

// serve(ucx), with the UCX that is found for a call. In doubt pass(ucp), with the functions of one
// of several.
template <typename serving, typename passing>
void *call_by(const caller_ucx &found, const serving &serve, const passing &pass) {
    if (found.ucx == nullptr) {
        return reinterpret_cast<void *>(static_cast<intptr_t>(UCS_ERR_UNSUPPORTED));
    }
    return found.is_certain() ? serve(*found.ucx) : pass(dt::ucp_of(*found.ucx));
}

}  // namespace cuda_nc::hooks
