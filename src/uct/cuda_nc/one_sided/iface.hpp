// The transport of one-sided operations within a machine, between GPUs or from host memory to host
// memory: an interface and its endpoints.
#pragma once

#include "uct/cuda_nc/memory/process_id.hpp"
#include "uct/cuda_nc/one_sided/component.hpp"
#include "uct/cuda_nc/one_sided/mover.hpp"
#include "uct/cuda_nc/ucx/abi_parameters.hpp"

namespace cuda_nc::uct {

// As it travels.
struct one_sided_address {
    uint8_t version;
    served_memory served;
    uint8_t padding[2];
    uint32_t host;
    process_id process;
};

// What UCX weighs transports by. GPUs: better than what its own cuda_ipc says of itself on any GPU
// (1.9e12 at most), which copies at the same rate and takes 7 us of CPU for each block. More than 4
// times what cuda_ipc says on most, so that UCX does not share blocks out among both. Host memory:
// more than 4 times what cma says, too (11,145 MiB/s), which moves each block by itself; and an
// overhead as it is for one by itself, so that memory which both processes have mapped is written
// to without us up to some 30 KiB.
struct transport_cost {
    double bandwidth;  // bytes a second
    double latency;    // seconds
    double overhead;   // seconds
};
inline transport_cost cost_of(served_memory which) noexcept {
    return which == served_memory::gpu ? transport_cost{2e12, 1e-6, 0.4e-6}
                                       : transport_cost{50e9, 80e-9, 1.5e-6};
}

struct one_sided_interface {
    abi::uct_base_iface super;
    const ucx_api *ucx;
    served_memory served;
    bool serves;        // the program uses one-sided operations
    int event_fd = -1;  // made when UCX asks for it; nothing is ever written to it
    std::unique_ptr<list_mover> mover;

    static one_sided_interface &of(abi::uct_iface *iface) {
        return *reinterpret_cast<one_sided_interface *>(iface);
    }
    static const one_sided_interface &of(const abi::uct_iface *iface) {
        return *reinterpret_cast<const one_sided_interface *>(iface);
    }
};

struct one_sided_endpoint {
    abi::uct_ep super;
    process_id peer;
    std::shared_ptr<const host_process> process;  // kept for its keys; null: GPUs

    static one_sided_endpoint &of(abi::uct_ep *ep) {
        return *reinterpret_cast<one_sided_endpoint *>(ep);
    }
};

// Member of uct_tl.
ucs_status_t open_one_sided_iface(abi::uct_md *md, void *worker,
                                  const abi::uct_iface_params *params,
                                  const abi::uct_iface_config *config, abi::uct_iface **iface_p);

// Whether memory of the process with this one_sided_address can be reached: another one of this
// machine, of the same kind of memory.
bool reaches_memory_of(const abi::uct_iface *iface, const void *address) noexcept;

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
