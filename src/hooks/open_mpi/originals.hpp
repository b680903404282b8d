// Open MPI's own functions behind those that the hooks replace.
#pragma once

#include "hooks/open_mpi/opal_functions.hpp"
#include "hooks/open_mpi/open_mpi.hpp"

namespace cuda_nc::hooks {

struct opal_originals : opal_functions {
    const open_mpi *api = nullptr;  // null: pass every call on
};

// Looked up by the first call, and valid for ever. The process ends, with a message, where nothing
// defines a function that somebody calls.
const opal_originals &opal() noexcept;

}  // namespace cuda_nc::hooks
