// Records of the datatypes that Open MPI moves by itself, without sending them (MPI_Pack, the local
// part of collectives), and that therefore need not have a record of UCX's.
#pragma once

#include "hooks/common/type_record.hpp"

namespace cuda_nc::hooks {

// What is known of `datatype`, which lives; the record lives as long as the datatype. Null: the
// type is Open MPI's own business (a predefined one), or its end cannot be watched. The first call
// for a type allocates and takes locks; a thread's next calls for the same type do not.
const type_record *find_watched(const open_mpi &api, const void *datatype) noexcept;

}  // namespace cuda_nc::hooks
