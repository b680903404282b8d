// Measures and checks all ways at one box and dimension.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "bench/stencil_grid.hpp"
#include "tools/perftest/support/statistics.hpp"

struct stencil_options {
    std::vector<int> boxes = {64, 128, 256, 512};
    std::vector<std::string> dimensions = {"all"}, ways = {"all"};
    std::string memory = "cuda", json, label = "mpi", first = "kernel", inject;
    int steps = 100, in_a_row = 1;
    double seconds = 10;  // of a way, at one box and dimension
    bool verify = true;

    // The CPU cannot compute in simulated GPU memory: no step is timed there.
    bool has_steps() const { return memory != "sim"; }
};

// Of each way alone, from the beginning.
constexpr int stencil_checked_steps = 4;

// Microseconds, of each sample the slowest rank's.
struct stencil_row {
    std::string way;
    cuda_nc::tools::summary exchange, step;
    cuda_nc::tools::summary kernel;  // of the interior, within the steps
};

struct stencil_result {
    std::string processor;  // of rank 0
    cuda_nc::tools::summary kernel_alone;
    std::vector<stencil_row> rows;
    int steps_taken = 0;      // by all ways together, in one field
    bool recomputed = false;  // the CPU took as many
    long wrong = 0;           // elements, on all ranks
};

// Collective over `line`. Says on standard error what is wrong, and where.
stencil_result run_stencil(const stencil_options &options, const stencil_grid &grid, MPI_Comm line);
