#include "uct/cuda_nc/md.hpp"

#include <cstdio>
#include <cstring>
#include <new>

#include "ucs/base/log.hpp"
#include "uct/cuda_nc/forward.hpp"
#include "uct/cuda_nc/memory/peer_memory.hpp"
#include "uct/cuda_nc/ucx/self_check.hpp"

namespace cuda_nc::uct {
namespace {

using namespace abi;

void our_name(const uct_md_resource_desc &carrier, uct_md_resource_desc &ours) noexcept {
    std::snprintf(ours.md_name, sizeof(ours.md_name), "nc_%.*s",
                  static_cast<int>(sizeof(ours.md_name) - 4), carrier.md_name);
}

// The carrier's own resources; UCX's, to be freed by free().
ucs_status_t carrier_resources(const carrier &on, uct_component **component_p,
                               uct_md_resource_desc **resources_p, unsigned *num_p) noexcept {
    *component_p = on.find_component();
    if (*component_p == nullptr) {
        nc_debug("no transport is named %s", on.name.c_str());
        try {
            warn_without_carriers(*on.ucx);
        } catch (...) {
            // no memory for a warning
        }
        *num_p = 0;
        return UCS_ERR_NO_DEVICE;
    }
    return (*component_p)->query_md_resources(*component_p, resources_p, num_p);
}

void close_md(uct_md *md) noexcept {
    auto *ours = &memory_domain::of(md);
    ours->gpu_memory.reset();
    ours->ucx->uct_md_close(ours->carrier);
    delete ours;
}

ucs_status_t unsupported() {
    return UCS_ERR_UNSUPPORTED;
}

// The table, and behind it what a later UCX would find there.
const struct {
    uct_md_ops known;
    ucs_status_t (*later[4])();
} md_ops = {{
                close_md,
                md_forward<&uct_md_ops::query>::call,
                md_forward<&uct_md_ops::mem_alloc>::call,
                md_forward<&uct_md_ops::mem_free>::call,
                md_forward<&uct_md_ops::mem_advise>::call,
                md_forward<&uct_md_ops::mem_reg>::call,
                md_forward<&uct_md_ops::mem_dereg>::call,
                md_forward<&uct_md_ops::mem_query>::call,
                md_forward<&uct_md_ops::mkey_pack>::call,
                md_forward<&uct_md_ops::mem_attach>::call,
                md_forward<&uct_md_ops::detect_memory_type>::call,
                md_forward<&uct_md_ops::mem_elem_pack>::call,
                md_forward<&uct_md_ops::mem_elem_release>::call,
            },
            {unsupported, unsupported, unsupported, unsupported}};

}  // namespace

ucs_status_t query_md_resources(uct_component *component, uct_md_resource_desc **resources_p,
                                unsigned *num_resources_p) noexcept {
    *resources_p = nullptr;
    *num_resources_p = 0;
    const carrier &on = carrier::of(component);
    uct_component *theirs;
    if (!is_checked(*on.ucx) ||
        carrier_resources(on, &theirs, resources_p, num_resources_p) != UCS_OK) {
        return UCS_OK;  // there is nothing
    }
    for (unsigned i = 0; i < *num_resources_p; ++i) {
        our_name(uct_md_resource_desc((*resources_p)[i]), (*resources_p)[i]);
    }
    return UCS_OK;
}

ucs_status_t open_md(uct_component *component, const char *name, const void *,
                     uct_md **md_p) noexcept {
    carrier &on = carrier::of(component);
    const ucx_api *ucx = on.ucx;
    if (!is_checked(*ucx)) {
        return UCS_ERR_UNSUPPORTED;
    }
    watch_new_libraries();
    uct_component *theirs;
    uct_md_resource_desc *resources = nullptr;
    uct_md_resource_desc wanted, ours;
    unsigned num = 0;
    bool found = false;
    ucs_status_t status = carrier_resources(on, &theirs, &resources, &num);
    if (status != UCS_OK) {
        return status;
    }
    for (unsigned i = 0; i < num && !found; ++i) {
        our_name(resources[i], ours);
        found = std::strcmp(ours.md_name, name) == 0;
        wanted = resources[i];
    }
    ucx->ucs_free(resources);
    if (!found) {
        return UCS_ERR_NO_DEVICE;
    }
    void *config;
    status = ucx->uct_md_config_read(theirs, nullptr, nullptr, &config);
    if (status != UCS_OK) {
        return status;
    }
    auto *md = new (std::nothrow) memory_domain;
    if (md == nullptr) {
        ucx->uct_config_release(config);
        return UCS_ERR_NO_MEMORY;
    }
    md->super = {&md_ops.known, component};
    md->ucx = ucx;
    md->standing_on = &on;
    status = ucx->uct_md_open(theirs, wanted.md_name, config, &md->carrier);
    ucx->uct_config_release(config);
    if (status != UCS_OK) {
        delete md;
        return status;
    }
    uct_md_attr attr = {};
    if (ucx->uct_md_query(md->carrier, &attr) == UCS_OK) {
        md->gpu_memory.reset(new (std::nothrow) carrier_memory(*ucx, md->carrier, attr));
    }
    *md_p = &md->super;
    return UCS_OK;
}

ucs_status_t query_devices(uct_md *md, uct_tl_device_resource **devices_p,
                           unsigned *num_devices_p) noexcept {
    const memory_domain &ours = memory_domain::of(md);
    uct_tl_resource_desc *found;
    unsigned num;
    ucs_status_t status = ours.ucx->uct_md_query_tl_resources(ours.carrier, &found, &num);
    if (status != UCS_OK) {
        return status;
    }
    auto *devices = static_cast<uct_tl_device_resource *>(
        ours.ucx->ucs_malloc((num + 1) * sizeof(uct_tl_device_resource), "cuda_nc devices"));
    *num_devices_p = 0;
    for (unsigned i = 0; i < num && devices != nullptr; ++i) {
        if (std::strncmp(found[i].tl_name, ours.standing_on->name.c_str(),
                         sizeof(found[i].tl_name)) == 0) {
            uct_tl_device_resource &device = devices[(*num_devices_p)++];
            std::memcpy(device.name, found[i].dev_name, sizeof(device.name));
            device.type = found[i].dev_type;
            device.sys_device = found[i].sys_device;
        }
    }
    ours.ucx->uct_release_tl_resource_list(found);
    *devices_p = devices;
    return devices != nullptr ? UCS_OK : UCS_ERR_NO_MEMORY;
}

}  // namespace cuda_nc::uct
