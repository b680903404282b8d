#include "uct/cuda_nc/iface.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "ucs/base/compiler.hpp"
#include "ucs/base/log.hpp"
#include "ucs/base/settings.hpp"
#include "ucs/base/status.hpp"
#include "uct/cuda_nc/memory/this_machine.hpp"
#include "uct/cuda_nc/one_sided/component.hpp"
#include "uct/cuda_nc/peers.hpp"
#include "uct/cuda_nc/protocol/announcement.hpp"
#include "uct/cuda_nc/protocol/direct_messages.hpp"
#include "uct/cuda_nc/protocol/gpu_preparation.hpp"
#include "uct/cuda_nc/protocol/put_slots.hpp"
#include "uct/cuda_nc/protocol/send_message.hpp"
#include "uct/cuda_nc/selection.hpp"
#include "uct/cuda_nc/ucx/internal_ops.hpp"

namespace cuda_nc::uct {
namespace {

using namespace abi;

// What a transport around another cannot offer by forwarding alone.
constexpr uint64_t hidden_flags =
    cap_flag::connect_to_sockaddr | cap_flag::tag_offload | cap_flag::device_ep;

// Within a machine these are for memory that the carrier's own domain has made, and UCX's own
// transport serves them. Between hosts ours does too, so that one connection is enough.
constexpr uint64_t one_sided_flags = cap_flag::put_short | cap_flag::put_bcopy |
                                     cap_flag::put_zcopy | cap_flag::get_short |
                                     cap_flag::get_bcopy | cap_flag::get_zcopy | cap_flag::atomics;

uct_iface *carrier_of(uct_iface *iface) noexcept {
    return interface::of(iface).carrier;
}

// ---- handlers of active messages

ucs_status_t handle_by_detour(void *arg, void *data, size_t length, unsigned flags) {
    const uct_am_handler &handler = *static_cast<interface::detour *>(arg)->handler;
    return handler.cb(handler.arg, data, length, flags);
}

ucs_status_t handle_rndv_data(void *arg, void *data, size_t length, unsigned flags) {
    auto &iface = *static_cast<interface *>(arg);
    if (CUDA_NC_UNLIKELY(wire::is_marked(data, length))) {
        iface.messages->handle_data(static_cast<char *>(data), length);
        return UCS_OK;
    }
    const uct_am_handler &handler = iface.super.am[wire::rndv_data_id];
    return handler.cb(handler.arg, data, length, flags);
}

ucs_status_t handle_rts(void *arg, void *data, size_t length, unsigned flags) {
    auto &iface = *static_cast<interface *>(arg);
    iface.messages->handle_rts(data, length);
    const uct_am_handler &handler = iface.super.am[wire::rts_id];
    return handler.cb(handler.arg, data, length, flags);
}

ucs_status_t handle_ats(void *arg, void *data, size_t length, unsigned flags) {
    auto &iface = *static_cast<interface *>(arg);
    iface.messages->handle_ats(data, length);
    const uct_am_handler &handler = iface.super.am[wire::ats_id];
    return handler.cb(handler.arg, data, length, flags);
}

ucs_status_t handle_control(void *arg, void *data, size_t length, unsigned) {
    static_cast<interface *>(arg)->messages->handle_control(data, length);
    return UCS_OK;
}

void set_own_handlers(interface &iface) noexcept {
    iface.ucx->uct_iface_set_am_handler(iface.carrier, wire::rndv_data_id, handle_rndv_data, &iface,
                                        0);
    iface.ucx->uct_iface_set_am_handler(iface.carrier, wire::rts_id, handle_rts, &iface, 0);
    iface.ucx->uct_iface_set_am_handler(iface.carrier, wire::ats_id, handle_ats, &iface, 0);
    iface.ucx->uct_iface_set_am_handler(iface.carrier, wire::control_id, handle_control, &iface, 0);
}

// `straight`: from the carrier to UCP's handlers; else by way of our table.
void lead_handlers(interface &iface, bool straight) noexcept {
    for (unsigned id = 0; id < max_am_ids; ++id) {
        if (iface.messages != nullptr && (id == wire::rndv_data_id || id == wire::rts_id ||
                                          id == wire::ats_id || id == wire::control_id)) {
            continue;
        }
        const uct_am_handler &ours = iface.super.am[id];
        ucs_status_t status =
            straight ? iface.ucx->uct_iface_set_am_handler(iface.carrier, static_cast<uint8_t>(id),
                                                           ours.cb, ours.arg, ours.flags)
                     : iface.ucx->uct_iface_set_am_handler(iface.carrier, static_cast<uint8_t>(id),
                                                           handle_by_detour, &iface.detours[id],
                                                           ours.flags);
        if (status != UCS_OK) {
            nc_error("the carrier takes no handler of active message %u: %s", id,
                     status_text(status));
        }
    }
}

void enable_progress(uct_iface *iface, unsigned flags) {
    interface::of(iface).is_progressed = true;
    lead_handlers(interface::of(iface), true);
    carrier_of(iface)->ops.iface_progress_enable(carrier_of(iface), flags);
}

void disable_progress(uct_iface *iface, unsigned flags) {
    carrier_of(iface)->ops.iface_progress_disable(carrier_of(iface), flags);
    interface::of(iface).is_progressed = false;
    lead_handlers(interface::of(iface), false);
}

// ---- operations that are the carrier's

template <auto member>
struct iface_forward;

template <typename result, typename... arguments,
          result (*uct_iface_ops::*member)(uct_iface *, arguments...)>
struct iface_forward<member> {
    static result call(uct_iface *iface, arguments... values) {
        uct_iface *carrier = carrier_of(iface);
        return (carrier->ops.*member)(carrier, values...);
    }
};

ucs_status_t query(uct_iface *iface, uct_iface_attr *attr) {
    uct_iface *carrier = carrier_of(iface);
    ucs_status_t status = carrier->ops.iface_query(carrier, attr);
    if (status == UCS_OK) {
        attr->cap.flags &= ~hidden_flags;
        attr->iface_addr_len += sizeof(address_header);
        if (interface::of(iface).to_endpoints) {
            attr->ep_addr_len += sizeof(address_header);
        }
        if ((attr->cap.flags & cap_flag::inter_node) == 0) {
            attr->cap.flags &= ~one_sided_flags;
            std::memset(attr->cap.atomic32, 0, sizeof(attr->cap.atomic32));
            std::memset(attr->cap.atomic64, 0, sizeof(attr->cap.atomic64));
        }
        // Of transports that are as good as each other UCP takes the first by this for its active
        // messages.
        attr->priority = static_cast<uint8_t>(std::min(attr->priority + 1, UINT8_MAX));
    }
    return status;
}

ucs_status_t get_address(uct_iface *iface, void *address) {
    interface &ours = interface::of(iface);
    std::memcpy(address, &ours.address, sizeof(ours.address));
    return ours.carrier->ops.iface_get_address(ours.carrier,
                                               const_cast<void *>(after_header(address)));
}

int is_reachable(uct_iface *iface, const void *device_address, const void *iface_address) {
    uct_iface_is_reachable_params params = {};
    params.field_mask = reachable_param::device_addr | reachable_param::iface_addr;
    params.device_addr = device_address;
    params.iface_addr = iface_address;
    return is_iface_reachable(iface, &params);
}

ucs_status_t report_error(void *arg, uct_ep *carrier_ep, ucs_status_t error) {
    auto &iface = *static_cast<interface *>(arg);
    endpoint *found = endpoint_on(iface, carrier_ep);
    if (found == nullptr || iface.super.err_handler == nullptr) {
        return error;  // as UCX does where nobody handles it
    }
    return iface.super.err_handler(iface.super.err_handler_arg, &found->super, error);
}

// UCP's last endpoint of ours may be gone while receives wait. Then the user's ucp_worker_arm()
// asks us no more, and sleeps, whatever we say: the descriptor has to wake it, which UCP watches
// for us once we have said that we are armed.
ucs_status_t arm_event(uct_iface *iface, unsigned events) {
    interface &ours = interface::of(iface);
    if (ours.messages != nullptr && !ours.messages->fall_asleep() &&
        (ours.is_progressed || !ours.messages->take_a_nap())) {
        return UCS_ERR_BUSY;
    }
    return ours.carrier->ops.iface_event_arm(ours.carrier, events);
}

ucs_status_t get_descriptor(uct_iface *iface, int *descriptor_p) {
    interface &ours = interface::of(iface);
    const ucs_status_t status = ours.carrier->ops.iface_event_fd_get(ours.carrier, descriptor_p);
    if (status == UCS_OK && ours.messages != nullptr) {
        *descriptor_p = ours.messages->descriptor(*descriptor_p);
    }
    return status;
}

ucs_status_t flush(uct_iface *iface, unsigned flags, void *completion) {
    interface &ours = interface::of(iface);
    if (ours.messages != nullptr && ours.messages->holds_back()) {
        return UCS_INPROGRESS;
    }
    return ours.carrier->ops.iface_flush(ours.carrier, flags, completion);
}

// ---- life

void close(uct_iface *iface) {
    interface *ours = &interface::of(iface);
    if (ours->messages != nullptr) {
        --direct_interfaces[ours->ucx->instance];
    }
    end_newcomers(*ours);
    ours->messages.reset();
    ours->ucx->uct_iface_close(ours->carrier);
    for (const region &one : ours->open_to_peers) {
        release_region(one);
    }
    delete ours;
}

ucs_status_t unsupported() {
    return UCS_ERR_UNSUPPORTED;
}

void set_ops(uct_iface_ops &ops) noexcept {
    auto *all = reinterpret_cast<function *>(&ops);
    for (size_t i = 0; i < sizeof(ops) / sizeof(function); ++i) {
        all[i] = reinterpret_cast<function>(unsupported);
    }
    set_endpoint_ops(ops);
#define FORWARDED(member) ops.member = iface_forward<&uct_iface_ops::member>::call
    FORWARDED(iface_fence);
    FORWARDED(iface_progress);
    FORWARDED(iface_get_device_address);
#undef FORWARDED
    ops.iface_progress_enable = enable_progress;
    ops.iface_progress_disable = disable_progress;
    ops.iface_event_arm = arm_event;
    ops.iface_event_fd_get = get_descriptor;
    ops.iface_flush = flush;
    ops.iface_close = close;
    ops.iface_query = query;
    ops.iface_get_address = get_address;
    ops.iface_is_reachable = is_reachable;
}

// An offer and an answer are one message of the carrier each. (An early offer is shorter, but for
// UCP's RTS.)
bool has_room_for_messages(const uct_iface_attr &attr) noexcept {
    constexpr size_t offer = sizeof(wire::data_prefix) + sizeof(wire::sender_offer) +
                             sizeof(wire::rndv_header) + send_message::first_bytes;
    static_assert(longest_announcement < offer);
    return (attr.cap.flags & cap_flag::am_bcopy) != 0 &&
           attr.cap.am.max_bcopy >= std::max(offer, sizeof(wire::control));
}

void learn_abilities(interface &iface, carrier_memory *memory) {
    constexpr uint64_t connects = cap_flag::connect_to_iface | cap_flag::connect_to_ep;
    uct_iface_attr attr = {};
    if (iface.carrier->ops.iface_query(iface.carrier, &attr) != UCS_OK) {
        return;
    }
    iface.to_endpoints = (attr.cap.flags & connects) == cap_flag::connect_to_ep;
    iface.within_machine = (attr.cap.flags & cap_flag::inter_node) == 0;
    if (!config().direct || !has_room_for_messages(attr)) {
        return;
    }
    iface.longest_bcopy = attr.cap.am.max_bcopy;
    iface.longest_short = (attr.cap.flags & cap_flag::am_short) != 0 ? attr.cap.am.max_short : 0;
    iface.messages = std::make_unique<direct_messages>(iface);
    iface.address.flags |= takes_offers;
    iface.datatype_slowness =
        iface.within_machine ? slowness_within_machine : slowness_between_hosts;
    if (config().network_slots && memory != nullptr &&
        can_put_gpu_memory(attr, memory->attributes())) {
        iface.gpu_memory = memory;
        iface.longest_put = attr.cap.put.max_zcopy;
        iface.address.flags |= puts_gpu_memory;
    }
}

ucs_status_t open_carrier(interface &iface, const memory_domain &md, void *worker,
                          const uct_iface_params &params) noexcept {
    const char *name = md.standing_on->name.c_str();
    uct_iface_config *config;
    ucs_status_t status =
        iface.ucx->uct_md_iface_config_read(md.carrier, name, nullptr, nullptr, &config);
    if (status != UCS_OK) {
        return status;
    }
    uct_iface_params theirs = params;
    theirs.mode.device.tl_name = name;
    theirs.field_mask |= iface_param::err_handler | iface_param::err_handler_arg;
    theirs.err_handler = report_error;
    theirs.err_handler_arg = &iface;
    status = iface.ucx->uct_iface_open(md.carrier, worker, &theirs, config, &iface.carrier);
    iface.ucx->uct_config_release(config);
    return status;
}

}  // namespace

ucs_status_t open_iface(uct_md *md, void *worker, const uct_iface_params *params,
                        const uct_iface_config *, uct_iface **iface_p) noexcept try {
    if (!(params->field_mask & iface_param::open_mode) ||
        !(params->open_mode & iface_param::open_device)) {
        return UCS_ERR_UNSUPPORTED;
    }
    const memory_domain &domain = memory_domain::of(md);
    auto *iface = new interface();
    iface->ucx = domain.ucx;
    iface->address = {wire::protocol_version, 0, domain.standing_on->kind(), this_machine(),
                      next_message_id()};
    set_ops(iface->super.super.ops);
    iface->super.internal_ops = internal_ops_of(domain.ucx->which);
    iface->super.md = md;
    iface->super.worker = worker;
    iface->super.prog.id = -1;
    if (params->field_mask & iface_param::err_handler) {
        iface->super.err_handler = params->err_handler;
    }
    if (params->field_mask & iface_param::err_handler_arg) {
        iface->super.err_handler_arg = params->err_handler_arg;
    }
    ucs_status_t status = open_carrier(*iface, domain, worker, *params);
    if (status != UCS_OK) {
        delete iface;
        return status;
    }
    auto *opened = reinterpret_cast<uct_iface *>(iface);
    for (unsigned id = 0; id < max_am_ids; ++id) {
        iface->detours[id].handler = &iface->super.am[id];
        iface->ucx->uct_iface_set_am_handler(opened, static_cast<uint8_t>(id), nullptr, nullptr, 0);
    }
    learn_abilities(*iface, domain.gpu_memory.get());
    // Without our gets UCX by itself sends few bytes eagerly; the simulated GPU's messages cannot
    // go so, because UCX would write into its memory.
    if (config().one_sided && !is_simulated()) {
        most_buffered =
            config().direct_thresh_is_set
                ? std::clamp<uint64_t>(config().direct_thresh, 1, most_buffered_of_all + 1) - 1
                : most_buffered_of_all;
    }
    if (iface->messages != nullptr) {
        ++direct_interfaces[iface->ucx->instance];
        if (config().contiguous != "n") {
            least_contiguous = config().direct_thresh_is_set
                                   ? std::max<uint64_t>(config().direct_thresh, 1)
                                   : contiguous_length;
        }
        set_own_handlers(*iface);
        prepare_gpus_at_allocations(*iface->ucx);
    }
    lead_handlers(*iface, false);
    *iface_p = opened;
    return UCS_OK;
} catch (const std::bad_alloc &) {
    return UCS_ERR_NO_MEMORY;
}

}  // namespace cuda_nc::uct
