// What UCX asks of our interface beyond its operations, in the order of each release.
#include "uct/cuda_nc/ucx/internal_ops.hpp"

#include <cstring>

#include "uct/cuda_nc/memory/this_machine.hpp"
#include "uct/cuda_nc/one_sided/iface.hpp"

namespace cuda_nc::uct {
namespace {

using namespace abi;

ucs_status_t estimate_perf(uct_iface *iface, uct_perf_attr_t *attr) {
    const transport_cost cost = cost_of(one_sided_interface::of(iface).served);
    if (attr->field_mask & perf_attr::send_pre_overhead) {
        attr->send_pre_overhead = cost.overhead;
    }
    if (attr->field_mask & perf_attr::send_post_overhead) {
        attr->send_post_overhead = 0;
    }
    if (attr->field_mask & perf_attr::recv_overhead) {
        attr->recv_overhead = 0;
    }
    if (attr->field_mask & perf_attr::bandwidth) {
        attr->bandwidth = {0, cost.bandwidth};
    }
    if (attr->field_mask & perf_attr::path_bandwidth) {
        attr->path_bandwidth = {0, cost.bandwidth};
    }
    if (attr->field_mask & perf_attr::latency) {
        attr->latency = {cost.latency, 0};
    }
    if (attr->field_mask & perf_attr::max_inflight_eps) {
        attr->max_inflight_eps = SIZE_MAX;
    }
    if (attr->field_mask & perf_attr::flags) {
        attr->flags = 0;
    }
    return UCS_OK;
}

ucs_status_t query_1_22(uct_iface *iface, void *attributes) {
    const ucs_status_t status =
        one_sided_interface::of(iface).ucx->uct_iface_base_query_v2(iface, attributes);
    auto &attr = *static_cast<uct_iface_attr_1_22 *>(attributes);
    if (status != UCS_OK || !one_sided_interface::of(iface).serves) {
        return status;
    }
    if (attr.field_mask & attr_v2_1_22::cap_flags) {
        attr.cap.flags |= put_sgl::capability;
    }
    if (attr.field_mask & attr_v2_1_22::max_put_sgl) {
        attr.max_put_sgl_zcopy_count = SIZE_MAX;
    }
    return UCS_OK;
}

ucs_status_t query_1_23(uct_iface *iface, void *attributes) {
    const ucs_status_t status =
        one_sided_interface::of(iface).ucx->uct_iface_base_query_v2(iface, attributes);
    auto &attr = *static_cast<uct_iface_attr_1_23 *>(attributes);
    if (status != UCS_OK || !one_sided_interface::of(iface).serves) {
        return status;
    }
    if (attr.field_mask & attr_v2_1_23::cap_flags) {
        attr.cap.flags |= put_sgl::capability | attr_v2_1_23::get_sgl_capability;
    }
    if (attr.field_mask & attr_v2_1_23::max_put_sgl) {
        attr.max_put_sgl_zcopy_count = SIZE_MAX;
    }
    if (attr.field_mask & attr_v2_1_23::max_get_sgl) {
        attr.max_get_sgl_zcopy_count = SIZE_MAX;
    }
    return UCS_OK;
}

ucs_status_t query_base(uct_iface *iface, void *attributes) {
    return one_sided_interface::of(iface).ucx->uct_iface_base_query_v2(iface, attributes);
}

int is_reachable(const uct_iface *iface, const uct_iface_is_reachable_params *params) {
    return (params->field_mask & reachable_param::iface_addr) != 0 &&
                   reaches_memory_of(iface, params->iface_addr)
               ? 1
               : 0;
}

int is_connected(uct_ep *ep, const uct_ep_is_connected_params *params) {
    one_sided_address address;
    if ((params->field_mask & connected_param::iface_addr) == 0) {
        return 0;
    }
    std::memcpy(&address, params->iface_addr, sizeof(address));
    return address.host == this_machine() && address.process == one_sided_endpoint::of(ep).peer ? 1
                                                                                                : 0;
}

void refresh_vfs(uct_iface *) {}

template <typename table>
with_later_members<table> common_ops() noexcept {
    with_later_members<table> ops;
    ops.iface_estimate_perf = estimate_perf;
    ops.iface_vfs_refresh = refresh_vfs;
    ops.iface_is_reachable_v2 = is_reachable;
    ops.ep_is_connected = is_connected;
    return ops;
}

}  // namespace

const void *one_sided_ops_of(release which) noexcept {
    static const auto v1_19 = common_ops<uct_iface_internal_ops_1_19>();
    static const auto v1_20 = [] {
        auto ops = common_ops<uct_iface_internal_ops_1_20>();
        ops.iface_query_v2 = query_base;
        return ops;
    }();
    static const auto v1_21 = common_ops<uct_iface_internal_ops_1_21>();
    static const auto v1_22 = [] {
        auto ops = common_ops<uct_iface_internal_ops_1_22>();
        ops.iface_query_v2 = query_1_22;
        ops.ep_put_sgl_zcopy = put_list;
        return ops;
    }();
    static const auto v1_23 = [] {
        auto ops = common_ops<uct_iface_internal_ops_1_23>();
        ops.iface_query_v2 = query_1_23;
        ops.ep_put_sgl_zcopy = put_list;
        ops.ep_get_sgl_zcopy = get_list;
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
