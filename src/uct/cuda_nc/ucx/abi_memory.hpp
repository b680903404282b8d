// UCX's structures of registered memory and of operations on it, as they lie in memory: see
// abi.hpp. All are the same in every release that is served.
#pragma once

#include "uct/cuda_nc/ucx/abi.hpp"
#include "uct/cuda_nc/ucx/abi_parameters.hpp"

namespace cuda_nc::uct::abi {

// ---- flags, as far as they are used

namespace md_flag {
constexpr uint64_t reg = bit(1), need_memh = bit(2), need_rkey = bit(3), invalidate = bit(8),
                   invalidate_rma = bit(11), invalidate_amo = bit(12);
}

namespace mem_flag {
constexpr unsigned hide_errors = 1u << 3, remote_put = 1u << 5, local_read = 1u << 8,
                   local_write = 1u << 9;
}

namespace mem_attr_field {
constexpr uint64_t mem_type = bit(0), sys_dev = bit(1), base_address = bit(2),
                   alloc_length = bit(3), dmabuf_fd = bit(4);
}

namespace dereg_param {
constexpr uint64_t flags = bit(1), completion = bit(2);
constexpr unsigned invalidate = 1u << 0;  // of flags
}  // namespace dereg_param

namespace pack_param {
constexpr uint64_t flags = bit(0);
constexpr unsigned invalidate_rma = 1u << 0;  // of flags: the key may be taken back
}  // namespace pack_param

namespace flush_flag {
constexpr unsigned cancel = 1u << 0;
}

namespace memory_type {
constexpr int host_number = 0, cuda_number = 1;
constexpr uint64_t host = bit(host_number), cuda = bit(cuda_number);  // in masks of types
}  // namespace memory_type

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

// What a memory domain itself is asked for. 1.22 added the last member.
struct uct_md_attr_v2 {
    uint64_t field_mask;
    uint64_t max_alloc;
    size_t max_reg;
    uint64_t flags;
    uint64_t reg_mem_types;
    uint64_t reg_nonblock_mem_types;
    uint64_t cache_mem_types;
    uint64_t gva_mem_types;
    uint64_t detect_mem_types;
    uint64_t alloc_mem_types;
    uint64_t access_mem_types;
    uint64_t dmabuf_mem_types;
    ucs_linear_func reg_cost;
    char component_name[16];
    size_t rkey_packed_size;
    uint64_t local_cpus[16];
    size_t exported_mkey_packed_size;
    char global_id[256];
    size_t reg_alignment;
    uint8_t required_mem_flags;
};

struct uct_md_mem_attr {
    uint64_t field_mask;
    int mem_type;
    uint8_t sys_dev;
    void *base_address;
    size_t alloc_length;
    int dmabuf_fd;
    size_t dmabuf_offset;
};

struct uct_md_mkey_pack_params {
    uint64_t field_mask;
    unsigned flags;
};

struct uct_md_mem_dereg_params {
    uint64_t field_mask;
    unsigned flags;
    void *memh;
    struct uct_completion *comp;
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
