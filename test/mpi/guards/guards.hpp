// Programs that do one thing very often, and tell what it costs in memory and time. Two ranks; the
// same call on both. Each prints lines "rank R: NAME VALUE" and "WRONG ..." for wrong bytes.
#pragma once

#include <cstdio>
#include <string>

#include "support/made_type.hpp"
#include "support/memory.hpp"
#include "support/process_size.hpp"

namespace mpi_test {

struct guard_options {
    int rank = 0;
    int count = 1000;
    int blocks = 100;         // of 8 bytes, of each datatype
    bool any = false;         // receives with MPI_ANY_SOURCE
    bool contiguous = false;  // early-sends: one block, of each size
    uint64_t seed = 1;
};

// Receives that are cancelled; `count` of them, and messages before and after.
int run_cancels(memory &where, const guard_options &options);
// Datatypes that are made, used once and freed.
int run_types(memory &where, const guard_options &options);
// `count` messages, all of which are under way at a time, and as many of which few are.
int run_outstanding(memory &where, const guard_options &options);
// Both ranks send `count` messages, of up to 4 KiB each, by MPI_Send before either receives one.
// MPI does not promise that this ends; programs rely on it all the same.
int run_early_sends(memory &where, const guard_options &options);

inline void tell(const guard_options &options, const char *name, double value) {
    std::printf("rank %d: %s %.3f\n", options.rank, name, value);
    std::fflush(stdout);
}

// Bytes by which the process has grown.
class growth {
  public:
    double bytes() const {
        return static_cast<double>(process_size::now().kilobytes - before_.kilobytes) * 1024;
    }

  private:
    const process_size before_ = process_size::now();
};

}  // namespace mpi_test
