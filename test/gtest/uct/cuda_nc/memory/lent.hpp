// What another process says of memory that it lends to a test.
#pragma once

#include <cstdint>

#include "uct/cuda_nc/memory/process_id.hpp"
#include "uct/cuda_nc/protocol/wire.hpp"

namespace cuda_nc::uct {

struct lent {
    gpu::ipc_handle handle;
    uint64_t offset;
    process_id process;
    wire::source_descriptor source;  // of bytes to be pulled
};

}  // namespace cuda_nc::uct
