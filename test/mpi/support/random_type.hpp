// Random nested datatypes, the same on every rank that gives the same seed.
#pragma once

#include "made_type.hpp"
#include "random.hpp"

namespace mpi_test {

struct random_type_limits {
    int depth = 4;             // constructors, one inside the other
    int64_t bytes = 32 << 10;  // of one element
    int64_t span = 1 << 20;    // from its first byte to its last
    size_t runs = 2000;
};

// Committed. Constructors that would break a limit are left out.
made_type random_type(random_stream &random, const random_type_limits &limits);

}  // namespace mpi_test
