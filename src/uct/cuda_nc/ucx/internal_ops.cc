#include "uct/cuda_nc/ucx/internal_ops.hpp"

#include <cstdio>

#include "uct/cuda_nc/iface.hpp"
#include "uct/cuda_nc/selection.hpp"
#include "uct/cuda_nc/thread_context.hpp"

namespace cuda_nc::uct {
namespace {

using namespace abi;

// What is not ours goes by the same protocols, from the same lengths on, as by the carrier itself.
ucs_status_t estimate_perf(uct_iface *iface, uct_perf_attr_t *attr) {
    interface &ours = interface::of(iface);
    ucs_status_t status = ours.ucx->uct_iface_estimate_perf(ours.carrier, attr);
    if (status != UCS_OK) {
        return status;
    }
    if (datatype_send::is_current() && attr->operation == perf_attr::am_bcopy &&
        (attr->field_mask & perf_attr::bandwidth) != 0) {
        attr->bandwidth.dedicated /= ours.datatype_slowness;
        attr->bandwidth.shared /= ours.datatype_slowness;
    }
    return UCS_OK;
}

// Without what only some releases know (lists of scattered elements): the defaults.
ucs_status_t query_v2(uct_iface *iface, void *attr) {
    return interface::of(iface).ucx->uct_iface_base_query_v2(iface, attr);
}

void refresh_vfs(uct_iface *) {}

template <typename table>
with_later_members<table> common_ops() noexcept {
    with_later_members<table> ops;
    ops.iface_estimate_perf = estimate_perf;
    ops.iface_vfs_refresh = refresh_vfs;
    ops.ep_query = query_ep;
    ops.ep_invalidate = invalidate_ep;
    ops.ep_connect_to_ep_v2 = connect_to_ep;
    ops.iface_is_reachable_v2 = is_iface_reachable;
    ops.ep_is_connected = ep_is_connected;
    return ops;
}

}  // namespace

int is_iface_reachable(const uct_iface *iface,
                       const uct_iface_is_reachable_params *params) noexcept {
    const interface &ours = *reinterpret_cast<const interface *>(iface);
    uct_iface_is_reachable_params theirs = *params;
    if (params->field_mask & reachable_param::iface_addr) {
        bool whole = !(params->field_mask & reachable_param::iface_addr_length) ||
                     params->iface_addr_length >= sizeof(address_header);
        if (params->iface_addr == nullptr || !whole ||
            !header_agrees(params->iface_addr, ours.address.kind)) {
            constexpr uint64_t text =
                reachable_param::info_string | reachable_param::info_string_length;
            if ((params->field_mask & text) == text && params->info_string != nullptr) {
                std::snprintf(params->info_string, params->info_string_length,
                              "cuda_nc: the peer has another carrier or version");
            }
            return 0;
        }
        theirs.iface_addr = after_header(params->iface_addr);
        theirs.iface_addr_length -= sizeof(address_header);  // not read where its bit is unset
    }
    return ours.ucx->uct_iface_is_reachable_v2(ours.carrier, &theirs);
}

const void *internal_ops_of(release which) noexcept {
    static const auto v1_19 = common_ops<uct_iface_internal_ops_1_19>();
    static const auto v1_20 = [] {
        auto ops = common_ops<uct_iface_internal_ops_1_20>();
        ops.iface_query_v2 = query_v2;
        return ops;
    }();
    static const auto v1_21 = common_ops<uct_iface_internal_ops_1_21>();
    static const auto v1_22 = [] {
        auto ops = common_ops<uct_iface_internal_ops_1_22>();
        ops.iface_query_v2 = query_v2;
        return ops;
    }();
    static const auto v1_23 = [] {
        auto ops = common_ops<uct_iface_internal_ops_1_23>();
        ops.iface_query_v2 = query_v2;
        return ops;
    }();
    switch (which) {
        case release::v1_19:
            return &v1_19;
        case release::v1_20:
            return &v1_20;
        case release::v1_21:
            return &v1_21;
        case release::v1_22:
            return &v1_22;
        case release::v1_23:
            return &v1_23;
    }
    return nullptr;
}

}  // namespace cuda_nc::uct
