// One batch of random messages, checked byte for byte.
#pragma once

#include <cstdint>
#include <string>

#include "support/memory.hpp"

namespace mpi_test {

struct options {
    int types = 500;
    uint64_t seed = 0;
    std::string memory = "host";
    int batch = 24;
    int64_t largest = 1 << 20;
    bool local = false;  // packed, buffered and copied, not sent as they are
    bool verbose = false;
};

// Collective over the two ranks. Returns the number of messages with a wrong byte on this rank, and
// prints a line for each. `first`: number of the batch's first type.
int run_batch(int rank, memory &device, const options &o, int first);

}  // namespace mpi_test
