// The transport of one-sided operations between GPUs of a machine: an interface and its endpoints.
#pragma once

#include "uct/cuda_nc/memory/process_id.hpp"
#include "uct/cuda_nc/one_sided/mover.hpp"
#include "uct/cuda_nc/ucx/abi_parameters.hpp"

namespace cuda_nc::uct {

// As it travels.
struct gpu_iface_address {
    uint8_t version;
    uint8_t padding[3];
    uint32_t host;
    process_id process;
};

// What UCX weighs transports by: better than what its own cuda_ipc says of itself on any GPU
// (1.9e12 at most), which copies at the same rate and takes 7 us of CPU for each block. More than 4
// times what cuda_ipc says on most, so that UCX does not share blocks out among both.
constexpr double gpu_bandwidth = 2e12;   // bytes a second
constexpr double gpu_latency = 1e-6;     // seconds
constexpr double gpu_overhead = 0.4e-6;  // seconds

struct gpu_interface {
    abi::uct_base_iface super;
    const ucx_api *ucx;
    bool serves;        // the program uses one-sided operations
    int event_fd = -1;  // made when UCX asks for it; nothing is ever written to it
    std::unique_ptr<list_mover> mover;

    static gpu_interface &of(abi::uct_iface *iface) {
        return *reinterpret_cast<gpu_interface *>(iface);
    }
    static const gpu_interface &of(const abi::uct_iface *iface) {
        return *reinterpret_cast<const gpu_interface *>(iface);
    }
};

struct gpu_endpoint {
    abi::uct_ep super;
    process_id peer;

    static gpu_endpoint &of(abi::uct_ep *ep) { return *reinterpret_cast<gpu_endpoint *>(ep); }
};

// Member of uct_tl.
ucs_status_t open_gpu_iface(abi::uct_md *md, void *worker, const abi::uct_iface_params *params,
                            const abi::uct_iface_config *config, abi::uct_iface **iface_p);

// Whether GPUs of the process with this gpu_iface_address can be reached: another one of this
// machine.
bool reaches_gpus_of(const void *address) noexcept;

// A uct_iface_internal_ops of that release; lives for ever.
const void *one_sided_ops_of(release which) noexcept;

// Members of it: lists of puts and gets.
ucs_status_t put_list(abi::uct_ep *ep, void *const *buffers, const size_t *lengths,
                      void *const *memhs, const uint64_t *addresses, const uintptr_t *rkeys,
                      const size_t *counts, const size_t *strides, size_t number, void *completion);
ucs_status_t get_list(abi::uct_ep *ep, void *const *buffers, const size_t *lengths,
                      void *const *memhs, const uint64_t *addresses, const uintptr_t *rkeys,
                      const size_t *counts, const size_t *strides, size_t number, void *completion);

// The GPU that holds `address`; where launches do not reach it, -1.
int device_of(const void *address) noexcept;
// A GPU of which memory was registered; -1: there is none yet.
int any_registered_device() noexcept;

}  // namespace cuda_nc::uct
