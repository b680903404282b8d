#include "hooks/common/tag_send.hpp"

#include "hooks/common/datatype_ops.hpp"
#include "hooks/common/gpu_presence.hpp"
#include "ucp/dt/datatype.hpp"
#include "ucp/dt/ucp_api.hpp"
#include "ucs/base/compiler.hpp"
#include "ucs/model/choices.hpp"
#include "uct/cuda_nc/selection.hpp"
#include "uct/cuda_nc/thread_context.hpp"

namespace cuda_nc::hooks {
namespace {

bool is_of_datatype(const ucp_request_param_t &param) noexcept {
    return (param.op_attr_mask & UCP_OP_ATTR_FIELD_DATATYPE) != 0 &&
           (param.datatype & UCP_DATATYPE_CLASS_MASK) == UCP_DATATYPE_GENERIC;
}

// Bytes. A shorter message in host memory is copied in less time than a round trip takes.
constexpr uint64_t host_rendezvous = 64 << 10;

bool is_on_gpu(const void *buffer) noexcept {
    gpu::memory_kind kind = gpu::platform::instance().query(buffer).kind;
    return kind == gpu::memory_kind::device || kind == gpu::memory_kind::managed;
}

// The flag "fast completion" makes UCP send eagerly. Without it UCP chooses, and takes rendezvous
// inside a datatype_send.
uint32_t choose_flags(const ucp_request_param_t &given, const void *buffer, size_t count) noexcept {
    constexpr uint32_t fast = UCP_OP_ATTR_FLAG_FAST_CMPL, multi = UCP_OP_ATTR_FLAG_MULTI_SEND;
    const uint32_t eager = (given.op_attr_mask & ~multi) | fast;
    dt::message_bytes bytes;
    if (!hooks::find_bytes(given.datatype, count, &bytes) &&
        !dt::find_bytes(given.datatype, count, &bytes)) {
        return eager;  // not ours: it must not make the choice that UCP keeps for ours
    }
    const auto lowest = reinterpret_cast<uintptr_t>(buffer) + static_cast<uintptr_t>(bytes.lowest);
    if (is_on_gpu(reinterpret_cast<const void *>(lowest))) {
        const bool buffered = (given.op_attr_mask & fast) != 0;  // MPI_Send, not MPI_Isend
        return bytes.packed >= model::direct_thresh(buffered) ? given.op_attr_mask & ~fast : eager;
    }
    return bytes.packed >= host_rendezvous ? given.op_attr_mask : eager;
}

// Of a generic datatype; or the caller's UCX is not known yet, or remains unknown.
__attribute__((noinline)) void *choose_and_send(ucp_ep_h ep, const void *buffer, size_t count,
                                                uint64_t tag, const ucp_request_param_t &param,
                                                const void *caller) noexcept {
    const caller_ucx found = ucx_of(caller);
    if (found.ucx == nullptr) {
        return reinterpret_cast<void *>(static_cast<intptr_t>(UCS_ERR_UNSUPPORTED));
    }
    const dt::ucp_api &ucp = dt::ucp_of(*found.ucx);
    const bool may_go_direct =
        found.is_certain() && is_of_datatype(param) &&
        uct::direct_interfaces[found.ucx->index].load(std::memory_order_relaxed) != 0 &&
        sees_gpu_memory();
    if (!may_go_direct) {
        return ucp.tag_send_nbx(ep, buffer, count, tag, &param);
    }
    ucp_request_param_t chosen = param;
    chosen.op_attr_mask = choose_flags(param, buffer, count);
    uct::datatype_send scope;
    return ucp.tag_send_nbx(ep, buffer, count, tag, &chosen);
}

}  // namespace

// Every contiguous message of the process comes through here: it pays two loads of tables, some
// comparisons and a jump.
void *tag_send_nbx(void *ep, const void *buffer, size_t count, uint64_t tag, const void *param,
                   const void *caller) noexcept {
    auto *to = static_cast<ucp_ep_h>(ep);
    auto *given = static_cast<const ucp_request_param_t *>(param);
    const dt::ucp_api *ucp = dt::known_ucp_of(caller);
    if (CUDA_NC_LIKELY(ucp != nullptr) && CUDA_NC_LIKELY(!is_of_datatype(*given))) {
        return ucp->tag_send_nbx(to, buffer, count, tag, given);
    }
    return choose_and_send(to, buffer, count, tag, *given, caller);
}

}  // namespace cuda_nc::hooks
