// Compiled with debug information for check_abi.py; never run.
#include "uct/cuda_nc/abi_memory.hpp"
#include "uct/cuda_nc/abi_parameters.hpp"
