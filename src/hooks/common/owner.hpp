// Which MPI library, if any, registers a UCP datatype.
#pragma once

#include <string>

#include "hooks/common/mpi_library.hpp"

namespace cuda_nc::hooks {

struct owner {
    enum class kind {
        no_mpi,      // a plain UCP program, or our own datatypes
        served,      // `mpi` is not null
        not_served,  // an MPI library that we recognise, of a release that its class does not serve
        unknown_mpi  // it defines MPI_Init, and we know no more of it
    };
    kind what = kind::no_mpi;
    const char *product = nullptr;  // "MPICH", where recognised
    const mpi_library *mpi = nullptr;
    std::string path;  // of the file that holds the operations; empty where unknown
};

// `function` is one of the datatype's operations: the symbols of the file that holds it tell. Each
// file is looked at once. Thread safe; the result lives as long as the process.
const owner &owner_of(const void *function) noexcept;

// The MPI library of this process that can be read, is initialised, and whose handles of datatypes
// have this size, however it was loaded. Null, with a sentence in *why_p, which lives as long as
// the process: there is none, or several.
const mpi_library *find_ready_library(size_t datatype_bytes, const char **why_p) noexcept;

// Whether the object that holds `function` itself defines `symbol`. `handle` is the object's; it
// also reaches the symbols of the libraries that the object uses, which do not count.
bool defines(void *handle, const char *symbol, const void *function) noexcept;

}  // namespace cuda_nc::hooks
