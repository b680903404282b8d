// The UCX and the MPI that a program started from this shell would find.
#pragma once

#include <string>

namespace cuda_nc::tools {

struct found_library {
    bool found = false;
    std::string version;  // "1.22.0"
    std::string path;
    std::string remark;  // what it means for us, one sentence
};

// Loads libucp.so.0 of the loader's search path.
found_library find_ucx();
// Loads the libmpi.so that belongs to mpicxx or mpirun in PATH, else that of the loader's path.
found_library find_mpi();

}  // namespace cuda_nc::tools
