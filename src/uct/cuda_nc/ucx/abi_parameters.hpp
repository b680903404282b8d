// UCX's structures of parameters and attributes, as they lie in memory: see abi.hpp. All have the
// same size in every release that is served, so they can be copied.
#pragma once

#include <sys/socket.h>

#include "uct/cuda_nc/ucx/abi.hpp"

namespace cuda_nc::uct::abi {

// ---- field masks and flags, as far as they are used

constexpr uint64_t bit(unsigned n) {
    return uint64_t(1) << n;
}

namespace iface_param {
constexpr uint64_t open_mode = bit(1), device = bit(2), err_handler_arg = bit(6),
                   err_handler = bit(7), features = bit(18);
constexpr uint64_t open_device = bit(0);                 // of open_mode
constexpr uint64_t tag = bit(5), flush_remote = bit(6);  // of features
}  // namespace iface_param

namespace ep_param {
constexpr uint64_t iface = bit(0), iface_addr = bit(3), iface_addr_length = bit(18);
}

namespace reachable_param {
constexpr uint64_t device_addr = bit(0), iface_addr = bit(1), info_string = bit(2),
                   info_string_length = bit(3), iface_addr_length = bit(6);
}

namespace connected_param {
constexpr uint64_t iface_addr = bit(1), ep_addr = bit(2);
}

namespace connect_param {
constexpr uint64_t ep_addr_length = bit(1);
}

namespace perf_attr {
constexpr uint64_t send_pre_overhead = bit(5), recv_overhead = bit(7), bandwidth = bit(8),
                   latency = bit(10);
constexpr uint64_t send_post_overhead = bit(6), path_bandwidth = bit(9), max_inflight_eps = bit(11),
                   flags = bit(12);
constexpr int am_bcopy = 1;  // an operation
}  // namespace perf_attr

namespace cap_flag {
constexpr uint64_t am_short = bit(0), am_bcopy = bit(1), am_zcopy = bit(2), pending = bit(3),
                   put_short = bit(4), put_bcopy = bit(5), put_zcopy = bit(6), get_short = bit(8),
                   get_bcopy = bit(9), get_zcopy = bit(10), errhandle_peer_failure = bit(38),
                   connect_to_iface = bit(40), connect_to_ep = bit(41),
                   connect_to_sockaddr = bit(42), cb_sync = bit(44), inter_node = bit(54);
constexpr uint64_t atomics = bit(30) | bit(31);  // by the CPU, by the device
constexpr uint64_t tag_offload = bit(50) | bit(51) | bit(52) | bit(53);
constexpr uint64_t device_ep = bit(55) | bit(56);
}  // namespace cap_flag

namespace event_flag {
constexpr uint64_t send_completion = bit(0), receive = bit(1), fd = bit(3);
}

namespace put_sgl {
constexpr uint64_t capability = bit(0);  // in cap_flags
}

// Of query_v2, whose fields moved.
namespace attr_v2_1_22 {
constexpr uint64_t max_put_sgl = bit(0), cap_flags = bit(1);
}

namespace attr_v2_1_23 {
constexpr uint64_t max_put_sgl = bit(0), max_get_sgl = bit(1), cap_flags = bit(2);
constexpr uint64_t get_sgl_capability = bit(1);  // in cap_flags
}  // namespace attr_v2_1_23

// ---- structures

struct uct_iface_params {
    uint64_t field_mask;
    uint64_t cpu_mask[16];
    uint64_t open_mode;
    union {
        struct {
            const char *tl_name;
            const char *dev_name;
        } device;
        uint64_t words[5];
    } mode;
    void *stats_root;
    size_t rx_headroom;
    void *err_handler_arg;
    uct_error_handler err_handler;
    uint32_t err_handler_flags;
    void *eager_arg;
    function eager_cb;
    void *rndv_arg;
    function rndv_cb;
    void *async_event_arg;
    function async_event_cb;
    uint64_t keepalive_interval;
    size_t am_alignment;
    size_t am_align_offset;
    uint64_t features;
};

struct uct_ep_params {
    uint64_t field_mask;
    uct_iface *iface;
    void *user_data;
    const void *dev_addr;
    const void *iface_addr;
    const void *sockaddr;
    uint32_t sockaddr_cb_flags;
    function sockaddr_pack_cb;
    void *cm;
    void *conn_request;
    function sockaddr_cb_client;
    function sockaddr_cb_server;
    function disconnect_cb;
    unsigned path_index;
    function cm_resolve_cb;
    const void *private_data;
    size_t private_data_length;
    const void *local_sockaddr;
    size_t dev_addr_length;
    size_t iface_addr_length;
};

struct uct_iface_is_reachable_params {
    uint64_t field_mask;
    const void *device_addr;
    const void *iface_addr;
    char *info_string;
    size_t info_string_length;
    int scope;
    size_t device_addr_length;
    size_t iface_addr_length;
};

struct uct_ep_is_connected_params {
    uint64_t field_mask;
    const void *device_addr;
    const void *iface_addr;
    const void *ep_addr;
};

struct uct_ep_connect_to_ep_params {
    uint64_t field_mask;
    size_t device_addr_length;
    size_t ep_addr_length;
};

struct ucs_linear_func {
    double c, m;
};

struct uct_ppn_bandwidth {
    double dedicated, shared;
};

// UCX knows this one by its typedef alone.
struct uct_perf_attr_t {
    uint64_t field_mask;
    int operation;
    int local_memory_type;
    int remote_memory_type;
    uint8_t local_sys_device;
    uint8_t remote_sys_device;
    double send_pre_overhead;
    double send_post_overhead;
    double recv_overhead;
    uct_ppn_bandwidth bandwidth;
    uct_ppn_bandwidth path_bandwidth;
    ucs_linear_func latency;
    size_t max_inflight_eps;
    uint64_t flags;
};

struct rma_limits {
    size_t max_short, max_bcopy, min_zcopy, max_zcopy, opt_zcopy_align, align_mtu, max_iov;
};

struct am_limits {
    size_t max_short, max_bcopy, min_zcopy, max_zcopy, opt_zcopy_align, align_mtu, max_hdr, max_iov;
};

struct uct_iface_attr {
    struct {
        rma_limits put, get;
        am_limits am;
        size_t tag[11];
        uint64_t atomic32[2];
        uint64_t atomic64[2];
        uint64_t flags;
        uint64_t event_flags;
    } cap;
    size_t device_addr_len;
    size_t iface_addr_len;
    size_t ep_addr_len;
    size_t max_conn_priv;
    sockaddr_storage listen_sockaddr;
    double overhead;
    uct_ppn_bandwidth bandwidth;
    ucs_linear_func latency;
    uint8_t priority;
    size_t max_num_eps;
    unsigned dev_num_paths;
    uint8_t reserved_ctl_device;
};

// The first members alone of what each release calls uct_iface_attr_v2_t.
struct uct_iface_attr_1_22 {
    uint64_t field_mask;
    size_t max_put_sgl_zcopy_count;
    struct {
        uint64_t flags;
    } cap;
};

struct uct_iface_attr_1_23 {
    uint64_t field_mask;
    size_t max_put_sgl_zcopy_count;
    size_t max_get_sgl_zcopy_count;
    struct {
        uint64_t flags;
    } cap;
};

// ---- what an interface can do beyond its operations: a table for each release

using sgl_call = ucs_status_t (*)(uct_ep *, void *const *buffers, const size_t *lengths,
                                  void *const *memhs, const uint64_t *addresses,
                                  const uintptr_t *rkeys, const size_t *counts,
                                  const size_t *strides, size_t number, void *completion);

#define CUDA_NC_COMMON_INTERNAL_OPS                                           \
    ucs_status_t (*ep_query)(uct_ep *, void *attr);                           \
    ucs_status_t (*ep_invalidate)(uct_ep *, const void *params);              \
    ucs_status_t (*ep_connect_to_ep_v2)(uct_ep *, const void *device_address, \
                                        const void *ep_address, const void *params);
#define CUDA_NC_COMMON_REACHABLE_OPS                                                        \
    int (*iface_is_reachable_v2)(const uct_iface *, const uct_iface_is_reachable_params *); \
    int (*ep_is_connected)(uct_ep *, const uct_ep_is_connected_params *);
#define CUDA_NC_COMMON_FIRST_OPS                                         \
    ucs_status_t (*iface_estimate_perf)(uct_iface *, uct_perf_attr_t *); \
    void (*iface_vfs_refresh)(uct_iface *);

struct uct_iface_internal_ops_1_19 {
    CUDA_NC_COMMON_FIRST_OPS
    CUDA_NC_COMMON_INTERNAL_OPS
    CUDA_NC_COMMON_REACHABLE_OPS
};

struct uct_iface_internal_ops_1_20 {
    ucs_status_t (*iface_query_v2)(uct_iface *, void *attr);
    CUDA_NC_COMMON_FIRST_OPS
    function iface_mem_element_pack;
    CUDA_NC_COMMON_INTERNAL_OPS
    CUDA_NC_COMMON_REACHABLE_OPS
    function ep_get_device_ep;
};

struct uct_iface_internal_ops_1_21 {
    CUDA_NC_COMMON_FIRST_OPS
    CUDA_NC_COMMON_INTERNAL_OPS
    CUDA_NC_COMMON_REACHABLE_OPS
    function ep_get_device_ep;
};

struct uct_iface_internal_ops_1_22 {
    ucs_status_t (*iface_query_v2)(uct_iface *, void *attr);
    CUDA_NC_COMMON_FIRST_OPS
    CUDA_NC_COMMON_INTERNAL_OPS
    CUDA_NC_COMMON_REACHABLE_OPS
    function ep_get_device_ep;
    sgl_call ep_put_sgl_zcopy;
};

struct uct_iface_internal_ops_1_23 : uct_iface_internal_ops_1_22 {
    sgl_call ep_get_sgl_zcopy;
    function ep_outstanding_purge;
};

#undef CUDA_NC_COMMON_FIRST_OPS
#undef CUDA_NC_COMMON_INTERNAL_OPS
#undef CUDA_NC_COMMON_REACHABLE_OPS

}  // namespace cuda_nc::uct::abi
