// The transports of UCX that ours can stand on.
#pragma once

#include <string>
#include <vector>

#include "uct/cuda_nc/ucx/ucx.hpp"

namespace cuda_nc::uct {

// One item of UCX_CUDA_NC_CARRIERS, a transport's name as ucx_info -d prints it, and a component of
// ours that stands on it; one for each UCX that we are registered with. Lives for ever.
struct carrier {
    abi::uct_component component;  // ours, first: UCX hands it back
    abi::uct_tl transport;         // named cuda_nc
    const ucx_api *ucx;
    std::string name;  // the carrier's

    static carrier &of(abi::uct_component *component) {
        return *reinterpret_cast<carrier *>(component);
    }

    // The component that has the carrier, or null: its module may be missing. Looked for at each
    // call, because modules are loaded in any order.
    abi::uct_component *find_component() const noexcept;

    // On the wire: two sides agree on their carrier by it.
    uint16_t kind() const noexcept;
};

// Of this UCX, without ours; those of the modules that it has loaded.
std::vector<std::string> names_of_transports(const ucx_api &ucx);

// Once in a process, where no item of UCX_CUDA_NC_CARRIERS is a transport of this UCX. To be called
// once UCX has loaded its modules.
void warn_without_carriers(const ucx_api &ucx);

// "posix,tcp" -> {"posix", "tcp"}: no empty names, none twice.
std::vector<std::string> split_names(const std::string &list);

}  // namespace cuda_nc::uct
