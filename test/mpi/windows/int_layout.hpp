// A layout of ints: an MPI datatype, and the places of its ints as plain loops see them.
#pragma once

#include <mpi.h>

#include <vector>

#include "support/random.hpp"

namespace mpi_test {

struct int_layout {
    std::vector<int> places;  // of each int, in the order in which they travel; none twice
    int span = 0;             // all places are below
    MPI_Datatype type = MPI_DATATYPE_NULL;
    int count = 1;  // of the type
};

// `number` ints, laid out in a random way: contiguous, rows, a box in an array, blocks in any
// order, columns. Committed; the same on each rank that has the same `random`.
int_layout make_int_layout(random_stream &random, int number);
void free_int_layout(int_layout *layout);

}  // namespace mpi_test
