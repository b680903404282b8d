// MPI datatypes of layouts.
#pragma once

#include <mpi.h>

#include "ucs/layout/layout.hpp"

namespace cuda_nc::tools {

// One element of it covers the layout, in its order: the list of blocks as a contiguous or hindexed
// type of the largest numbers (doubles, floats, bytes) that every block is made of, as in a program
// that sends numbers, and an hvector around it for each dimension. The caller commits and frees it.
// Throws run_error.
MPI_Datatype make_datatype(const layout &what);

// Throws run_error where `status` is not MPI_SUCCESS.
void check_mpi(int status, const char *what);

// MPI counts by int. Throws run_error.
int to_mpi_count(uint64_t value);

}  // namespace cuda_nc::tools
