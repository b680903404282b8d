// UCX's structures of registered memory and of operations on it, as they lie in memory: see
// abi.hpp. All are the same in every release that is served.
#pragma once

#include "uct/cuda_nc/ucx/abi.hpp"
#include "uct/cuda_nc/ucx/abi_parameters.hpp"

namespace cuda_nc::uct::abi {

// ---- flags, as far as they are used

namespace md_flag {
constexpr uint64_t reg = bit(1), need_rkey = bit(3);
}

namespace mem_flag {
constexpr unsigned hide_errors = 1u << 3, remote_put = 1u << 5, local_read = 1u << 8,
                   local_write = 1u << 9;
}

namespace flush_flag {
constexpr unsigned cancel = 1u << 0;
}

namespace memory_type {
constexpr uint64_t cuda = bit(1);  // in masks of types
}

// ---- structures

struct uct_md_attr {
    struct {
        uint64_t max_alloc;
        size_t max_reg;
        uint64_t flags;
        uint64_t reg_mem_types;
        uint64_t detect_mem_types;
        uint64_t alloc_mem_types;
        uint64_t access_mem_types;
    } cap;
    ucs_linear_func reg_cost;
    char component_name[16];
    size_t rkey_packed_size;
    uint64_t local_cpus[16];
};

struct uct_rkey_bundle {
    uintptr_t rkey;
    void *handle;
    void *type;
};

struct uct_iov {
    void *buffer;
    size_t length;
    void *memh;
    size_t stride;
    unsigned count;
};

struct uct_completion {
    void (*func)(uct_completion *);
    int count;
    ucs_status_t status;
};

}  // namespace cuda_nc::uct::abi
