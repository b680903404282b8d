// libcuda_nc.so in this process: the one that UCX's plugin is part of, so that datatypes made here
// are those that the transport knows. The tools themselves do not link to it.
#pragma once

#include <cuda_nc/cuda_nc.h>

namespace cuda_nc::tools {

struct product_library {
    decltype(&cuda_nc_version) version = nullptr;
    decltype(&cuda_nc_dt_create) dt_create = nullptr;
    decltype(&cuda_nc_dt_destroy) dt_destroy = nullptr;
    decltype(&cuda_nc_sim_malloc) sim_malloc = nullptr;
    decltype(&cuda_nc_sim_free) sim_free = nullptr;
    decltype(&cuda_nc_sim_memcpy) sim_memcpy = nullptr;
};

// Loads it: the one in the process, else the one that was built or installed with this program.
// Throws run_error.
const product_library &load_product();

// Loads the plugin, as UCX 1.22 and the shim do: for any UCX, and before its first ucp_init. Throws
// run_error.
void load_plugin();

}  // namespace cuda_nc::tools
