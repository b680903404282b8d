// The module that UCX loads as its plugin.
#pragma once

namespace cuda_nc::tools {

// Loads the module that lies beside the libcuda_nc.so of this process, as UCX 1.22 and the shim do.
// Works with any UCX, if called before the first ucp_init. Does nothing where a module is loaded
// already. Throws run_error.
void load_plugin();

}  // namespace cuda_nc::tools
