// MPI functions whose work on GPU memory MPICH does with the CPU: packing, buffered sends, messages
// to oneself, collectives. We stand in front of them, as a profiling library does.
#pragma once

#include <vector>

#include "ucs/base/elf_walker.hpp"

namespace cuda_nc::hooks::local {

enum class whose { all, not_the_shims };  // what the shim does not define (interposed_mpi.h)

// {"MPI_Pack", our function}, ...; empty where this process has no MPICH that we serve, which may
// yet be loaded, or can have no GPU memory. The functions pass on all calls without GPU memory, to
// a tool's functions where those stand in front of MPICH's.
std::vector<replacement> replaced_calls(whose wanted) noexcept;

// Ours in place of a function that the shim defines, or null. `following` is what the caller would
// reach without us, or null.
void *find_replaced(const char *name, void *following) noexcept;

}  // namespace cuda_nc::hooks::local
