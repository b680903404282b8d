#include "uct/cuda_nc/ep.hpp"

#include <new>

#include "ucs/base/compiler.hpp"
#include "uct/cuda_nc/address.hpp"
#include "uct/cuda_nc/forward.hpp"
#include "uct/cuda_nc/iface.hpp"
#include "uct/cuda_nc/memory/address_process.hpp"
#include "uct/cuda_nc/peers.hpp"
#include "uct/cuda_nc/protocol/direct_messages.hpp"

namespace cuda_nc::uct {
namespace {

using namespace abi;

const ucx_api &ucx_of(uct_ep *ep) noexcept {
    return *interface::of(ep->iface).ucx;
}

void learn_peer(interface &iface, endpoint &ep, const void *address) noexcept {
    address_header header;
    std::memcpy(&header, address, sizeof(header));
    const bool near = header.host == iface.address.host;
    ep.peer = header.identity;
    ep.by_network = !near && iface.gpu_memory != nullptr && (header.flags & puts_gpu_memory) != 0;
    ep.may_go_direct =
        iface.messages != nullptr && (header.flags & takes_offers) != 0 && (near || ep.by_network);
    ep.is_loopback = header.identity == iface.address.identity;
    add_peer(iface, ep);
}

// The process behind an interface's address, where the carrier knows.
void learn_process(interface &iface, endpoint &ep, const void *address) noexcept {
    const std::string &carrier = memory_domain::of(iface.super.md).standing_on->name;
    ep.carrier_pid = process_behind(carrier, after_header(address));
}

ucs_status_t create(const uct_ep_params *params, uct_ep **ep_p) noexcept try {
    interface &iface = interface::of(params->iface);
    uct_ep_params theirs = *params;
    theirs.iface = iface.carrier;
    if (params->field_mask & ep_param::iface_addr) {
        if (!header_agrees(params->iface_addr, iface.address.kind)) {
            return UCS_ERR_UNREACHABLE;
        }
        theirs.iface_addr = after_header(params->iface_addr);
        theirs.iface_addr_length -= sizeof(address_header);  // not read where its bit is unset
    }
    auto *ep = new endpoint();
    ep->super.iface = params->iface;
    ucs_status_t status = iface.ucx->uct_ep_create(&theirs, &ep->carrier);
    if (status != UCS_OK) {
        delete ep;
        return status;
    }
    try {
        add_endpoint(iface, *ep);
    } catch (const std::bad_alloc &) {
        iface.ucx->uct_ep_destroy(ep->carrier);
        delete ep;
        throw;
    }
    if (params->field_mask & ep_param::iface_addr) {
        learn_process(iface, *ep, params->iface_addr);
        learn_peer(iface, *ep, params->iface_addr);
    }
    *ep_p = &ep->super;
    return UCS_OK;
} catch (const std::bad_alloc &) {
    return UCS_ERR_NO_MEMORY;
}

void destroy(uct_ep *ep) noexcept {
    endpoint *ours = &endpoint::of(ep);
    interface &iface = interface::of(ep->iface);
    admit_newcomers(iface);
    if (iface.messages != nullptr) {
        iface.messages->endpoint_closed(*ours);
    }
    remove_endpoint(iface, *ours);
    iface.ucx->uct_ep_destroy(ours->carrier);
    delete ours;
}

// ---- active messages: most are not ours, and pay a comparison and a jump

constexpr auto am_short_of_carrier = ep_forward<&uct_iface_ops::ep_am_short>::call;
constexpr auto am_bcopy_of_carrier = ep_forward<&uct_iface_ops::ep_am_bcopy>::call;

// RTS, ATS, RTR and rendezvous data: something of ours may go ahead of them, or in their place.
constexpr bool is_rendezvous(uint8_t id) noexcept {
    return id >= wire::rts_id && id <= wire::rndv_data_id;
}
static_assert(is_rendezvous(wire::rtr_id));

// An RTR also where nothing is offered: the receive is one whose sender may be killed.
bool is_looked_at(const endpoint &ours, const direct_messages *messages, uint8_t id) noexcept {
    return messages != nullptr &&
           (id == wire::rtr_id || (wire::is_announced(id) && ours.may_go_direct));
}

// UCS_ERR_NO_RESOURCE may be ours: where the carrier then says that it has room, UCP asks again,
// and what is to go first goes.
__attribute__((noinline)) ucs_status_t rendezvous_short(uct_ep *ep, uint8_t id, uint64_t header,
                                                        const void *payload, unsigned length) {
    endpoint &ours = endpoint::of(ep);
    direct_messages *messages = interface::of(ep->iface).messages.get();
    if (is_looked_at(ours, messages, id)) {
        return messages->send_rendezvous_short(ours, id, header, payload, length);
    }
    return am_short_of_carrier(ep, id, header, payload, length);
}

ucs_status_t am_short(uct_ep *ep, uint8_t id, uint64_t header, const void *payload,
                      unsigned length) {
    if (CUDA_NC_UNLIKELY(is_rendezvous(id))) {
        return rendezvous_short(ep, id, header, payload, length);
    }
    return am_short_of_carrier(ep, id, header, payload, length);
}

__attribute__((noinline)) ssize_t rendezvous_bcopy(uct_ep *ep, uint8_t id, uct_pack_callback pack,
                                                   void *arg, unsigned flags) {
    endpoint &ours = endpoint::of(ep);
    direct_messages *messages = interface::of(ep->iface).messages.get();
    if (messages != nullptr && id == wire::rndv_data_id) {
        // Also where nothing new is offered: messages may be under way.
        return messages->send_rndv_data(ours, pack, arg, flags);
    }
    if (is_looked_at(ours, messages, id)) {
        return messages->send_rendezvous(ours, id, pack, arg, flags);
    }
    return am_bcopy_of_carrier(ep, id, pack, arg, flags);
}

ssize_t am_bcopy(uct_ep *ep, uint8_t id, uct_pack_callback pack, void *arg, unsigned flags) {
    if (CUDA_NC_UNLIKELY(is_rendezvous(id))) {
        return rendezvous_bcopy(ep, id, pack, arg, flags);
    }
    return am_bcopy_of_carrier(ep, id, pack, arg, flags);
}

// ---- what waits

ucs_status_t pending_add(uct_ep *ep, void *request, unsigned flags) {
    endpoint &ours = endpoint::of(ep);
    if (direct_messages *messages = interface::of(ep->iface).messages.get()) {
        return messages->add_pending(ours, request, flags);
    }
    return ours.carrier->iface->ops.ep_pending_add(ours.carrier, request, flags);
}

void pending_purge(uct_ep *ep, function callback, void *arg) {
    endpoint &ours = endpoint::of(ep);
    if (direct_messages *messages = interface::of(ep->iface).messages.get()) {
        messages->purge_pending(ours, reinterpret_cast<pending_requests::purge_callback>(callback),
                                arg);
    } else {
        ours.carrier->iface->ops.ep_pending_purge(ours.carrier, callback, arg);
    }
}

// What is cancelled does not wait for room at a peer that is gone: UCX would wait for ever.
ucs_status_t flush(uct_ep *ep, unsigned flags, void *completion) {
    endpoint &ours = endpoint::of(ep);
    const interface &iface = interface::of(ep->iface);
    const ucs_status_t status =
        iface.messages != nullptr
            ? iface.messages->flush(ours, flags, static_cast<uct_completion *>(completion))
            : ours.carrier->iface->ops.ep_flush(ours.carrier, flags, completion);
    const bool needs_no_peer = iface.within_machine && (flags & flush_flag::cancel) != 0;
    return needs_no_peer && status == UCS_ERR_NO_RESOURCE ? UCS_OK : status;
}

// Where endpoints connect to each other, their own addresses say whose they are.
ucs_status_t get_address(uct_ep *ep, void *address) {
    const interface &iface = interface::of(ep->iface);
    if (iface.to_endpoints) {
        std::memcpy(address, &iface.address, sizeof(iface.address));
        address = const_cast<void *>(after_header(address));
    }
    uct_ep *carrier = endpoint::of(ep).carrier;
    return carrier->iface->ops.ep_get_address(carrier, address);
}

ucs_status_t connect_to_ep_simply(uct_ep *ep, const void *device_address, const void *ep_address) {
    const uct_ep_connect_to_ep_params nothing = {};
    if (interface::of(ep->iface).to_endpoints) {
        return connect_to_ep(ep, device_address, ep_address, &nothing);
    }
    uct_ep *carrier = endpoint::of(ep).carrier;
    return carrier->iface->ops.ep_connect_to_ep(carrier, device_address, ep_address);
}

}  // namespace

bool agree_on_process(endpoint &ep, const process_id &process, const process_id &own) noexcept {
    if (process.started == 0) {
        return true;
    }
    if (ep.carrier_pid != 0 && process.pid_space == own.pid_space &&
        process.pid != ep.carrier_pid) {
        return false;
    }
    if (ep.process.started != 0) {
        return ep.process == process;
    }
    // One that has ended may be no more than a claim in the peer's name: receives of the peer's
    // other messages shall not end because of it. Its own message can do without.
    if (!is_gone(process)) {
        ep.process = process;
    }
    return true;
}

process_id process_of_peer(endpoint &ep) noexcept {
    if (ep.process.started != 0 || ep.carrier_pid == 0) {
        return ep.process;
    }
    if (ep.process_by_carrier.started == 0) {
        ep.process_by_carrier = process_id_of(ep.carrier_pid);
    }
    return ep.process_by_carrier;
}

// That a put has ended says that its bytes may be overwritten here; what orders it before the
// notice at the receiver is a fence between the two on one endpoint, as UCP puts it between its
// own. The receiver's network then delivers the notice after it has written the bytes, and kernels
// that are launched after a notice see what was written before it (GPUDirect RDMA's manual, on
// memory ordering): UCP relies on no more.
ucs_status_t fence_puts(endpoint &ep) noexcept {
    return ep.carrier->iface->ops.ep_fence(ep.carrier, 0);
}

void set_endpoint_ops(uct_iface_ops &ops) noexcept {
#define FORWARDED(member) ops.member = ep_forward<&uct_iface_ops::member>::call
    FORWARDED(ep_put_short);
    FORWARDED(ep_put_bcopy);
    FORWARDED(ep_put_zcopy);
    FORWARDED(ep_get_short);
    FORWARDED(ep_get_bcopy);
    FORWARDED(ep_get_zcopy);
    FORWARDED(ep_am_short_iov);
    FORWARDED(ep_am_zcopy);
    FORWARDED(ep_atomic_cswap64);
    FORWARDED(ep_atomic_cswap32);
    FORWARDED(ep_atomic32_post);
    FORWARDED(ep_atomic64_post);
    FORWARDED(ep_atomic32_fetch);
    FORWARDED(ep_atomic64_fetch);
    FORWARDED(ep_fence);
    FORWARDED(ep_check);
#undef FORWARDED
    ops.ep_am_short = am_short;
    ops.ep_am_bcopy = am_bcopy;
    ops.ep_pending_add = pending_add;
    ops.ep_pending_purge = pending_purge;
    ops.ep_flush = flush;
    ops.ep_get_address = get_address;
    ops.ep_connect_to_ep = connect_to_ep_simply;
    ops.ep_create = create;
    ops.ep_destroy = destroy;
}

ucs_status_t query_ep(uct_ep *ep, void *attr) noexcept {
    return ucx_of(ep).uct_ep_query(endpoint::of(ep).carrier, attr);
}

ucs_status_t invalidate_ep(uct_ep *ep, const void *params) noexcept {
    return ucx_of(ep).uct_ep_invalidate(endpoint::of(ep).carrier, params);
}

ucs_status_t connect_to_ep(uct_ep *ep, const void *device_address, const void *ep_address,
                           const void *params) noexcept try {
    interface &iface = interface::of(ep->iface);
    endpoint &ours = endpoint::of(ep);
    if (!iface.to_endpoints) {
        return iface.ucx->uct_ep_connect_to_ep_v2(ours.carrier, device_address, ep_address, params);
    }
    uct_ep_connect_to_ep_params theirs;
    std::memcpy(&theirs, params, sizeof(theirs));
    const bool whole = (theirs.field_mask & connect_param::ep_addr_length) == 0 ||
                       theirs.ep_addr_length >= sizeof(address_header);
    if (!whole || !header_agrees(ep_address, iface.address.kind)) {
        return UCS_ERR_UNREACHABLE;
    }
    theirs.ep_addr_length -= sizeof(address_header);  // not read where its bit is unset
    ucs_status_t status = iface.ucx->uct_ep_connect_to_ep_v2(ours.carrier, device_address,
                                                             after_header(ep_address), &theirs);
    if (status == UCS_OK) {
        learn_peer(iface, ours, ep_address);
    }
    return status;
} catch (const std::bad_alloc &) {
    return UCS_ERR_NO_MEMORY;
}

int ep_is_connected(uct_ep *ep, const uct_ep_is_connected_params *params) noexcept {
    uct_ep_is_connected_params theirs = *params;
    if (params->field_mask & connected_param::iface_addr) {
        if (!header_agrees(params->iface_addr, interface::of(ep->iface).address.kind)) {
            return 0;
        }
        theirs.iface_addr = after_header(params->iface_addr);
    }
    if ((params->field_mask & connected_param::ep_addr) && interface::of(ep->iface).to_endpoints) {
        theirs.ep_addr = after_header(params->ep_addr);
    }
    return ucx_of(ep).uct_ep_is_connected(endpoint::of(ep).carrier, &theirs);
}

}  // namespace cuda_nc::uct
