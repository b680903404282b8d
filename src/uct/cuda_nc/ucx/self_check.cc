#include "uct/cuda_nc/ucx/self_check.hpp"

#include <dlfcn.h>

#include <array>
#include <cstring>
#include <mutex>

#include "ucs/base/log.hpp"

namespace cuda_nc::uct {
namespace {

using namespace abi;

constexpr uint8_t checked_id = 7;

ucs_status_t handler(void *, void *, size_t, unsigned) {
    return UCS_OK;
}

bool is_named(const void *address, const char *name) noexcept {
    Dl_info info;
    return dladdr(address, &info) != 0 && info.dli_saddr == address && info.dli_sname != nullptr &&
           std::strcmp(info.dli_sname, name) == 0;
}

// The members of this release's table that are functions UCX exports by name.
bool table_is_right(const ucx_api &ucx, const uct_base_iface &iface) noexcept {
    auto check = [&](const auto *table) {
        return is_named(reinterpret_cast<void *>(table->iface_estimate_perf),
                        "uct_base_iface_estimate_perf") &&
               is_named(reinterpret_cast<void *>(table->ep_is_connected),
                        "uct_base_ep_is_connected");
    };
    auto check_query = [&](const auto *table) {
        return is_named(reinterpret_cast<void *>(table->iface_query_v2), "uct_iface_base_query_v2");
    };
    const void *table = iface.internal_ops;
    switch (ucx.which) {
        case release::v1_19:
            return check(static_cast<const uct_iface_internal_ops_1_19 *>(table));
        case release::v1_20:
            return check(static_cast<const uct_iface_internal_ops_1_20 *>(table)) &&
                   check_query(static_cast<const uct_iface_internal_ops_1_20 *>(table));
        case release::v1_21:
            return check(static_cast<const uct_iface_internal_ops_1_21 *>(table));
        case release::v1_22:
        case release::v1_23:
            return check(static_cast<const uct_iface_internal_ops_1_22 *>(table)) &&
                   check_query(static_cast<const uct_iface_internal_ops_1_22 *>(table));
    }
    return false;
}

const char *check_iface(const ucx_api &ucx, uct_md *md, void *worker, uct_iface *opened) noexcept {
    auto &iface = *reinterpret_cast<uct_base_iface *>(opened);
    int marker;
    if (ucx.uct_iface_set_am_handler(opened, checked_id, handler, &marker, 0) != UCS_OK ||
        iface.am[checked_id].cb != handler || iface.am[checked_id].arg != &marker) {
        return "uct_base_iface.am";
    }
    if (iface.md != md) {
        return "uct_base_iface.md";
    }
    if (iface.worker != worker) {
        return "uct_base_iface.worker";
    }
    uct_iface_attr attr = {};
    if (opened->ops.iface_query(opened, &attr) != UCS_OK || attr.iface_addr_len != 8 ||
        (attr.cap.flags & (cap_flag::am_short | cap_flag::am_bcopy | cap_flag::cb_sync)) !=
            (cap_flag::am_short | cap_flag::am_bcopy | cap_flag::cb_sync)) {
        return "uct_iface_attr";
    }
    return table_is_right(ucx, iface) ? nullptr : "uct_iface_internal_ops";
}

// Members that UCX's base fills in with what nobody else says.
bool attributes_are_right(const ucx_api &ucx, uct_md *md) noexcept {
    constexpr unsigned char untouched = 0x5a;
    struct {
        uct_md_attr_v2 known;
        uint64_t later[64];
    } attr;
    std::memset(&attr, untouched, sizeof(attr));
    if (md->ops->query(md, &attr) != UCS_OK) {
        return false;
    }
    const bool is_later = ucx.which >= release::v1_22;
    return attr.known.reg_alignment == 1 && attr.known.max_reg == SIZE_MAX &&
           attr.known.local_cpus[0] == UINT64_MAX && attr.known.alloc_mem_types == 0 &&
           attr.known.reg_mem_types == 1 && attr.known.access_mem_types == 1 &&
           attr.known.required_mem_flags == (is_later ? 0 : untouched);
}

const char *check_md(const ucx_api &ucx, uct_component *component, uct_md *md) noexcept {
    if (md->component != component) {
        return "uct_md.component";
    }
    if (!attributes_are_right(ucx, md)) {
        return "uct_md_attr_v2";
    }
    auto *tl = reinterpret_cast<uct_tl *>(reinterpret_cast<char *>(component->tl_list.next) -
                                          offsetof(uct_tl, list));
    if (component->tl_list.next == &component->tl_list || std::strcmp(tl->name, "self") != 0) {
        return "uct_component.tl_list";
    }
    uct_tl_resource_desc *devices;
    unsigned num_devices;
    if (ucx.uct_md_query_tl_resources(md, &devices, &num_devices) != UCS_OK) {
        return "uct_tl_device_resource";
    }
    char device[sizeof(devices->dev_name)] = "";
    if (num_devices > 0 && std::strcmp(devices[0].tl_name, "self") == 0) {
        std::memcpy(device, devices[0].dev_name, sizeof(device));
    }
    ucx.uct_release_tl_resource_list(devices);
    if (std::strncmp(device, "memory", 6) != 0) {
        return "uct_tl_resource_desc";
    }
    uct_iface_config *config;
    if (ucx.uct_md_iface_config_read(md, "self", nullptr, nullptr, &config) != UCS_OK) {
        return "the settings of the transport self";
    }
    const char *mismatch = "the transport self";
    void *async = nullptr, *worker = nullptr;
    uct_iface *iface = nullptr;
    uct_iface_params params = {};
    params.field_mask = iface_param::open_mode | iface_param::device;
    params.open_mode = iface_param::open_device;
    params.mode.device.tl_name = "self";
    params.mode.device.dev_name = device;
    constexpr int poll_mode = 3, single_thread = 0;  // UCS_ASYNC_MODE_POLL: no thread, no signal
    if (ucx.ucs_async_context_create(poll_mode, &async) == UCS_OK) {
        if (ucx.uct_worker_create(async, single_thread, &worker) == UCS_OK) {
            if (ucx.uct_iface_open(md, worker, &params, config, &iface) == UCS_OK) {
                mismatch = check_iface(ucx, md, worker, iface);
                ucx.uct_iface_close(iface);
            }
            ucx.uct_worker_destroy(worker);
        }
        ucx.ucs_async_context_destroy(async);
    }
    ucx.uct_config_release(config);
    return mismatch;
}

}  // namespace

const char *find_mismatch(const ucx_api &ucx) noexcept {
    uct_component *self = nullptr;
    for_each_component(ucx, [&](uct_component *component) {
        if (std::strncmp(component->name, "self", sizeof(component->name)) == 0) {
            self = component;
        }
    });
    if (self == nullptr) {
        return "uct_component.name";
    }
    void *config;
    uct_md *md;
    if (ucx.uct_md_config_read(self, nullptr, nullptr, &config) != UCS_OK) {
        return "the settings of the component self";
    }
    ucs_status_t status = ucx.uct_md_open(self, "self", config, &md);
    ucx.uct_config_release(config);
    if (status != UCS_OK) {
        return "the component self";
    }
    const char *mismatch = check_md(ucx, self, md);
    ucx.uct_md_close(md);
    return mismatch;
}

bool is_checked(const ucx_api &ucx) noexcept {
    static std::array<std::once_flag, max_ucx_instances> once;
    static std::array<bool, max_ucx_instances> is_right;
    std::call_once(once[ucx.instance], [&ucx] {
        const char *mismatch = find_mismatch(ucx);
        is_right[ucx.instance] = mismatch == nullptr;
        if (mismatch != nullptr) {
            nc_warn(
                "the transport cuda_nc stays away, the job runs without it: %s of this UCX is "
                "not as in its release",
                mismatch);
        }
    });
    return is_right[ucx.instance];
}

}  // namespace cuda_nc::uct
