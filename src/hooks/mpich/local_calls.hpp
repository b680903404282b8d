// MPI functions whose work on GPU memory MPICH does with the CPU: packing, buffered sends, messages
// to oneself, collectives. We stand in front of them, as a profiling library does.
#pragma once

#include <vector>

#include "ucs/base/elf_walker.hpp"

namespace cuda_nc::hooks::local {

// {"MPI_Pack", our function}, ...; empty where this process has no MPICH that we serve, or can have
// no GPU memory. To be called once an MPI library is loaded. The functions pass on all calls
// without GPU memory.
const std::vector<replacement> &replaced_calls() noexcept;

// Those of large counts among them (MPI_Pack_c, ...), which the shim does not define.
std::vector<replacement> replaced_calls_of_large_counts() noexcept;

// Ours in place of `name`, or null.
void *find_replaced(const char *name) noexcept;

}  // namespace cuda_nc::hooks::local
