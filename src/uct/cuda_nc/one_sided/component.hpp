// The memory domain of GPU memory: it registers memory, makes keys of it and unpacks them. On the
// simulated GPU it also tells UCX which memory is a GPU's.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

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
    const int device;  // or list_mover::unreached

    // What keys of it need to be used: kept until the registration ends.
    void keep(std::shared_ptr<void> keeper) {
        std::lock_guard<std::mutex> guard(mutex);
        if (keeper != nullptr && (keepers.empty() || keepers.back() != keeper)) {
            keepers.push_back(std::move(keeper));
        }
    }

    std::mutex mutex;
    std::vector<std::shared_ptr<void>> keepers;
};

// Registers the component and its transport with a UCX that we know, once.
void register_one_sided(const ucx_api &ucx);

}  // namespace cuda_nc::uct
