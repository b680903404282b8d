// The UCX and the MPI that a program started from this shell would find.
#pragma once

#include <string>

namespace cuda_nc::tools {

struct found_library {
    bool found = false;
    std::string version;  // "1.22.0"
    std::string path;
    std::string remark;  // what it means for us, one sentence
    // Of a UCX: an address in it, and whether it loads plugins.
    const void *address = nullptr;
    bool loads_plugins = false;
};

// The libucp.so.0 that find_mpi() has loaded with the MPI, else that of the loader's search path.
// Copies of UCX under other names, as some Python packages bring them, are not looked for.
found_library find_ucx();
// Loads the libmpi.so that belongs to mpicxx or mpirun in PATH, else that of the loader's path.
found_library find_mpi();

// How a job that is started from this shell would get us.
struct found_loader {
    bool found = false;
    std::string text;  // half a sentence: by what, or why not
};

// By LD_PRELOAD, or by UCX_PLUGIN_PATH where UCX reads it.
found_loader find_loader(const found_library &ucx);

}  // namespace cuda_nc::tools
