// The memory domains of GPU and of host memory: they register memory, make keys of it and unpack
// them. On the simulated GPU the first one also tells UCX which memory is a GPU's.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "uct/cuda_nc/ucx/ucx.hpp"

namespace cuda_nc::uct {

enum class served_memory : uint8_t { gpu, host };

// One for each UCX that we are registered with, and each kind of memory. Lives for ever.
struct one_sided_component {
    abi::uct_component component;  // first: UCX hands it back
    abi::uct_tl transport;
    const ucx_api *ucx;
    served_memory served;

    static one_sided_component &of(abi::uct_component *component) {
        return *reinterpret_cast<one_sided_component *>(component);
    }
};

struct one_sided_domain {
    abi::uct_md super;
    const ucx_api *ucx;
    served_memory served;

    static one_sided_domain &of(abi::uct_md *md) {
        return *reinterpret_cast<one_sided_domain *>(md);
    }
};

// What mem_reg() gives for memory: UCX hands it back with each put and get.
struct registered_memory {
    const int device;  // or list_mover::unreached, as host memory is

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

// Registers the components and their transports with a UCX that we know, once.
void register_one_sided(const ucx_api &ucx);

}  // namespace cuda_nc::uct
