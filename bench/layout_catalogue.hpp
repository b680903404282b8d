// The layouts of the demo (demo_layouts in src/tools/perftest/layouts/tables.hpp), each as the MPI
// datatype that a program would make, and as a list of spans. Shares no code with the product.
#pragma once

#include <mpi.h>

#include <functional>
#include <string>
#include <vector>

struct span {
    size_t offset, length;  // bytes
};

struct catalogue_entry {
    std::vector<span> spans;  // in type-map order
    size_t extent = 0;        // bytes of a buffer for one element
    size_t payload = 0;       // bytes covered
    std::function<MPI_Datatype()> make_type;
};

std::vector<std::string> catalogue_names();

// No spans where the name is unknown. `bytes`: about so many are covered, by blocks of the same
// length or, of matrices and faces, by as many fewer or more of both; 0: as many as the demo has.
catalogue_entry make_entry(const std::string &name, size_t bytes = 0);
