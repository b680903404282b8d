// A memory domain that is the carrier's in all but name.
#pragma once

#include <memory>

#include "uct/cuda_nc/carrier/carrier.hpp"
#include "uct/cuda_nc/carrier/carrier_memory.hpp"

namespace cuda_nc::uct {

struct memory_domain {
    abi::uct_md super;
    const ucx_api *ucx;
    uct::carrier *standing_on;
    abi::uct_md *carrier;                        // owned
    std::unique_ptr<carrier_memory> gpu_memory;  // null: nothing is known of the domain

    static memory_domain &of(abi::uct_md *md) { return *reinterpret_cast<memory_domain *>(md); }
};

// Members of uct_component: one resource for each of the carrier's, named "nc_" and its name.
ucs_status_t query_md_resources(abi::uct_component *component,
                                abi::uct_md_resource_desc **resources_p,
                                unsigned *num_resources_p) noexcept;
ucs_status_t open_md(abi::uct_component *component, const char *name, const void *config,
                     abi::uct_md **md_p) noexcept;

// Member of uct_tl: the carrier's devices, under their own names, so that UCX_NET_DEVICES and
// UCX_SHM_DEVICES choose ours as they choose the carrier.
ucs_status_t query_devices(abi::uct_md *md, abi::uct_tl_device_resource **devices_p,
                           unsigned *num_devices_p) noexcept;

}  // namespace cuda_nc::uct
