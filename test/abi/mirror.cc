// Compiled with debug information for check_abi.py; never run.
#include "uct/cuda_nc/ucx/abi_memory.hpp"
#include "uct/cuda_nc/ucx/abi_parameters.hpp"
