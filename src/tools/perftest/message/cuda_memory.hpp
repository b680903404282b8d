// Memory of the kinds that the CUDA driver makes. The driver is found at run time: a program
// without it measures host memory.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "tools/perftest/message/memory.hpp"

namespace cuda_nc::tools {

// `kind`: gpu (cuMemAlloc), managed, pool (the GPU's own, of cudaMallocAsync), shared-pool (one
// that processes may share by file descriptors) or virtual (pieces of 20 MiB by cuMemCreate, which
// processes may share by file descriptors: so PyTorch makes its expandable segments). A process
// measures one GPU. Throws run_error.
std::unique_ptr<message_memory> allocate_cuda_memory(const std::string &kind, int gpu, size_t size);

// "NVIDIA H200"; throws run_error.
std::string name_of_gpu(int gpu);

[[noreturn]] void no_memory(const std::string &kind, size_t size);

}  // namespace cuda_nc::tools
