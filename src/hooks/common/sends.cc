#include "hooks/common/sends.hpp"

#include "hooks/common/contiguous.hpp"
#include "hooks/common/datatype_ops.hpp"
#include "hooks/common/gpu_presence.hpp"
#include "hooks/common/iov_message.hpp"
#include "hooks/common/passed_call.hpp"
#include "ucp/dt/datatype.hpp"
#include "ucp/dt/followed_send.hpp"
#include "ucs/base/log.hpp"
#include "ucs/gpu/known_memory.hpp"
#include "ucs/model/choices.hpp"
#include "uct/cuda_nc/selection.hpp"
#include "uct/cuda_nc/thread_context.hpp"

namespace cuda_nc::hooks {
namespace {

// Bytes. A shorter message in host memory is copied in less time than a round trip takes.
constexpr uint64_t host_rendezvous = 64 << 10;

// The flag "fast completion" makes UCP send eagerly. Without it UCP chooses, and takes rendezvous
// inside a datatype_send.
constexpr uint32_t fast = UCP_OP_ATTR_FLAG_FAST_CMPL, multi = UCP_OP_ATTR_FLAG_MULTI_SEND;

uint32_t eager(uint32_t given) noexcept {
    return (given & ~multi) | fast;
}

// Of `bytes` in GPU memory.
uint32_t choose_flags(uint32_t given, uint64_t bytes) noexcept {
    return bytes >= model::direct_thresh(should_be_buffered(given)) ? given & ~fast : eager(given);
}

uint32_t choose_flags(const ucp_request_param_t &given, const void *buffer, size_t count,
                      gpu::known_memory *known) noexcept {
    dt::message_bytes bytes;
    if (!hooks::find_bytes(given.datatype, count, &bytes) &&
        !dt::find_bytes(given.datatype, count, &bytes)) {
        // not ours: it must not make the choice that UCP keeps for ours
        return eager(given.op_attr_mask);
    }
    const auto lowest = reinterpret_cast<uintptr_t>(buffer) + static_cast<uintptr_t>(bytes.lowest);
    if (gpu::is_on_gpu(known->look(reinterpret_cast<const void *>(lowest)).kind)) {
        return choose_flags(given.op_attr_mask, bytes.packed);
    }
    return bytes.packed >= host_rendezvous ? given.op_attr_mask : eager(given.op_attr_mask);
}

// How calls differ: adapt() changes what UCP would not serve. False: it cannot be changed.
struct synchronous_message {
    static constexpr bool may_need_change = false, may_be_buffered = false;
    static bool adapt(ucp_request_param_t *) noexcept { return true; }
    static bool may_wait(const ucp_request_param_t &) noexcept { return true; }
};
struct tag_message : synchronous_message {
    static constexpr bool may_be_buffered = true;
};
struct active_message {
    // Where it is not to complete at once, ucp_am_send_nbx of every release passes over the
    // datatype and sends other bytes. A rendezvous does not complete at once anyway.
    static constexpr bool may_need_change = true, may_be_buffered = false;
    static bool adapt(ucp_request_param_t *param) noexcept {
        constexpr uint32_t not_at_once = UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
                           has_flags = UCP_OP_ATTR_FIELD_FLAGS;
        const uint32_t flags = (param->op_attr_mask & has_flags) != 0 ? param->flags : 0;
        if ((param->op_attr_mask & not_at_once) == 0) {
            return true;
        }
        if ((flags & UCP_AM_SEND_FLAG_EAGER) != 0) {
            nc_warn_once(
                "UCX sends other bytes where an active message has a derived datatype, "
                "UCP_AM_SEND_FLAG_EAGER and UCP_OP_ATTR_FLAG_NO_IMM_CMPL: leave one of them out");
            return false;
        }
        param->op_attr_mask = (param->op_attr_mask & ~not_at_once) | has_flags;
        param->flags = flags | UCP_AM_SEND_FLAG_RNDV;
        return true;
    }
    // For the receiver: no program asks for an eager send of what it wants by rendezvous.
    static bool may_wait(const ucp_request_param_t &given) noexcept {
        return (given.op_attr_mask & UCP_OP_ATTR_FIELD_FLAGS) == 0 ||
               (given.flags & UCP_AM_SEND_FLAG_EAGER) == 0;
    }
};

bool goes_direct(const ucx_instance &ucx) noexcept {
    return uct::direct_interfaces[ucx.index].load(std::memory_order_relaxed) != 0;
}

template <typename kind, typename sending>
void *send_generic(const ucx_instance &ucx, ucp_ep_h ep, const void *buffer, size_t count,
                   const ucp_request_param_t &given, const sending &pass) {
    ucp_request_param_t param = given;
    dt::followed_send followed(ep, &param);
    if (kind::may_need_change && dt::find_operations(given.datatype) != nullptr) {
        kind::adapt(&param);
    }
    const dt::ucp_api &ucp = dt::ucp_of(ucx);
    if (!goes_direct(ucx) || !sees_gpu_memory()) {
        return followed.returned(pass(ucp, buffer, count, &param));
    }
    gpu::known_memory known;  // the datatype asks for the same in the call
    param.op_attr_mask = choose_flags(param, buffer, count, &known);
    uct::datatype_send scope;
    return followed.returned(pass(ucp, buffer, count, &param));
}

// unchanged(ucp) where the message is not to be served.
template <typename kind, typename sending, typename passing>
void *send_message(const ucx_instance &ucx, ucp_ep_h ep, const iov_message &message,
                   const sending &pass, const passing &unchanged) {
    const dt::ucp_api &ucp = dt::ucp_of(ucx);
    if (!message.is_served()) {
        return unchanged(ucp);
    }
    ucp_request_param_t param = message.param();
    if (!kind::adapt(&param)) {
        return unchanged(ucp);
    }
    dt::followed_send followed(ep, &param);
    if (!goes_direct(ucx)) {
        if (should_be_buffered(param.op_attr_mask)) {
            param.op_attr_mask = eager(param.op_attr_mask);
        }
        return followed.returned(pass(ucp, message.buffer(), message.count, &param));
    }
    param.op_attr_mask = choose_flags(param.op_attr_mask, message.bytes());
    uct::datatype_send scope;
    return followed.returned(pass(ucp, message.buffer(), message.count, &param));
}

// pass(ucp, buffer, count, param) is the call of UCP.
template <typename kind, typename sending>
void *send(const void *caller, ucp_ep_h ep, const void *buffer, size_t count, const void *param,
           const sending &pass) {
    const auto *given = static_cast<const ucp_request_param_t *>(param);
    auto unchanged = [&](const dt::ucp_api &ucp) -> void * {
        return pass(ucp, buffer, count, given);
    };
    auto serve = [&](const ucx_instance &ucx) -> void * {
        if (has_datatype(*given, UCP_DATATYPE_GENERIC)) {
            return send_generic<kind>(ucx, ep, buffer, count, *given, pass);
        }
        if (has_datatype(*given, UCP_DATATYPE_IOV)) {
            const iov_message list(ucx, buffer, count, *given, iov_message::use::send);
            return send_message<kind>(ucx, ep, list, pass, unchanged);
        }
        gpu::known_memory known;  // what is made of the message asks for the same
        const bool is_ours = kind::may_be_buffered && is_short_buffered(*given, buffer, count)
                                 ? is_to_be_buffered(ucx, ep, buffer, &known)
                                 : is_long_contiguous(*given, count) && goes_direct(ucx) &&
                                       kind::may_wait(*given) && is_better_ours(ucx, ep, buffer);
        if (is_ours) {
            const iov_message all(ucx, buffer, contiguous_bytes(*given, count), *given);
            return send_message<kind>(ucx, ep, all, pass, unchanged);
        }
        return unchanged(dt::ucp_of(ucx));
    };
    return call_by(dt::ucx_of_endpoint(ep, caller), serve, unchanged);
}

}  // namespace

namespace looked_at {

void *tag_send_nbx(void *ep, const void *buffer, size_t count, uint64_t tag, const void *param,
                   const void *caller) {
    return send<tag_message>(caller, static_cast<ucp_ep_h>(ep), buffer, count, param,
                             [=](const dt::ucp_api &ucp, const void *from, size_t number,
                                 const ucp_request_param_t *chosen) {
                                 return ucp.tag_send_nbx(static_cast<ucp_ep_h>(ep), from, number,
                                                         tag, chosen);
                             });
}

void *tag_send_sync_nbx(void *ep, const void *buffer, size_t count, uint64_t tag, const void *param,
                        const void *caller) {
    return send<synchronous_message>(caller, static_cast<ucp_ep_h>(ep), buffer, count, param,
                                     [=](const dt::ucp_api &ucp, const void *from, size_t number,
                                         const ucp_request_param_t *chosen) {
                                         return ucp.tag_send_sync_nbx(static_cast<ucp_ep_h>(ep),
                                                                      from, number, tag, chosen);
                                     });
}

void *am_send_nbx(void *ep, unsigned id, const void *header, size_t header_length,
                  const void *buffer, size_t count, const void *param, const void *caller) {
    return send<active_message>(caller, static_cast<ucp_ep_h>(ep), buffer, count, param,
                                [=](const dt::ucp_api &ucp, const void *from, size_t number,
                                    const ucp_request_param_t *chosen) {
                                    return ucp.am_send_nbx(static_cast<ucp_ep_h>(ep), id, header,
                                                           header_length, from, number, chosen);
                                });
}

}  // namespace looked_at
}  // namespace cuda_nc::hooks
