// Records of datatypes that an MPI library moves itself without sending them (MPI_Pack, the local
// part of collectives). Such a type need not be registered with UCX, so it may have no other
// record.
#pragma once

#include "hooks/common/mpi_library.hpp"
#include "hooks/common/type_record.hpp"

namespace cuda_nc::hooks {

// The record of `datatype`, which must be alive; the record lives as long as the datatype. Null
// where the library is to move the type itself: a predefined one, or one whose end cannot be
// watched. The first call for a type allocates and takes locks; a thread's next calls for the same
// type do not.
const type_record *find_watched(const mpi_library &library, const void *datatype) noexcept;

// What `count` elements of such a type have in common: as its record keeps it, or made in *made_p
// where the record does not keep that count. Null where there is no record, or as
// type_record::make() says, which `expected_size` is for.
const counted_layout *find_watched_layout(const mpi_library &library, const void *datatype,
                                          uint64_t count, uint64_t expected_size,
                                          counted_layout *made_p) noexcept;

}  // namespace cuda_nc::hooks
