// Who registers a UCP datatype: found by the symbols of the library that holds its operations.
#pragma once

#include <string>

#include "hooks/open_mpi/open_mpi.hpp"

namespace cuda_nc::hooks {

struct owner {
    enum class kind {
        other,        // no MPI: a plain UCP program, our own datatypes
        open_mpi,     // `api` is not null
        mpich,        // not served yet
        unknown_mpi,  // defines MPI_Init, and we know no more of it
    };
    kind what = kind::other;
    const open_mpi *api = nullptr;
    std::string path;  // of the library; empty where unknown
};

// `function` is one of the datatype's operations. Remembered for each library; thread safe; the
// result lives for ever.
const owner &owner_of(const void *function) noexcept;

}  // namespace cuda_nc::hooks
