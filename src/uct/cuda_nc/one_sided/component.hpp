// The memory domain of GPU memory: it registers memory, makes keys of it and unpacks them. On the
// simulated GPU it also tells UCX which memory is a GPU's.
#pragma once

#include "uct/cuda_nc/ucx/ucx.hpp"

namespace cuda_nc::uct {

// One for each UCX that we are registered with. Lives for ever.
struct gpu_component {
    abi::uct_component component;  // first: UCX hands it back
    abi::uct_tl transport;
    const ucx_api *ucx;

    static gpu_component &of(abi::uct_component *component) {
        return *reinterpret_cast<gpu_component *>(component);
    }
};

struct gpu_domain {
    abi::uct_md super;
    const ucx_api *ucx;

    static gpu_domain &of(abi::uct_md *md) { return *reinterpret_cast<gpu_domain *>(md); }
};

// What mem_reg() gives for memory: UCX hands it back with each put and get.
struct registered_memory {
    int device;  // ordinal
};

// Registers the component and its transport with a UCX that we know, once.
void register_one_sided(const ucx_api &ucx);

}  // namespace cuda_nc::uct
