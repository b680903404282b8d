#include "hooks/common/contiguous.hpp"

#include <array>
#include <atomic>
#include <cstring>

#include "hooks/common/gpu_presence.hpp"
#include "hooks/common/policy.hpp"
#include "ucp/dt/ucp_api.hpp"
#include "ucs/base/settings.hpp"

namespace cuda_nc::hooks {
namespace {

// UCX 1.22 shares memory by file descriptors.
bool ucx_shares(const ucx_instance &ucx, gpu::sharing how) noexcept {
    return how == gpu::sharing::by_handle ||
           (how == gpu::sharing::by_descriptor && ucx.at_least(1, 22));
}

// Whether our transport leads to another process of this machine: its device is "memory" then. A
// process's own endpoint has the transport self, and copies within a process are UCX's.
bool is_of_this_machine(const ucx_instance &ucx, ucp_ep_h ep) {
    const auto query = dt::ucp_of(ucx).ep_query;
    std::array<ucp_transport_entry_t, 64> lanes = {};
    ucp_ep_attr_t attributes = {};
    attributes.field_mask = UCP_EP_ATTR_FIELD_TRANSPORTS;
    attributes.transports.entries = lanes.data();
    attributes.transports.num_entries = lanes.size();
    attributes.transports.entry_size = sizeof(lanes[0]);
    if (query == nullptr || query(ep, &attributes) != UCS_OK) {
        return false;
    }
    bool near = false;
    for (size_t i = 0; i < attributes.transports.num_entries; ++i) {
        const ucp_transport_entry_t &lane = lanes[i];
        if (lane.transport_name == nullptr || lane.device_name == nullptr) {
            continue;
        }
        if (std::strcmp(lane.transport_name, "self") == 0) {
            return false;
        }
        near = near || (std::strcmp(lane.transport_name, "cuda_nc") == 0 &&
                        std::strcmp(lane.device_name, "memory") == 0);
    }
    return near;
}

// An endpoint stays where its peer is: asking takes some tenths of a microsecond. One that is
// destroyed and made again at the same address for another machine is taken for the old one, and
// its messages then go by our way to other hosts. One that leads elsewhere is asked again now and
// then: it may not have been connected.
bool is_near(const ucx_instance &ucx, ucp_ep_h ep) {
    static std::array<std::atomic<ucp_ep_h>, 1024> near;
    static remembered<6, 20> far;
    std::atomic<ucp_ep_h> &place = near[(reinterpret_cast<uintptr_t>(ep) >> 6) % near.size()];
    if (place.load(std::memory_order_relaxed) == ep) {
        return true;
    }
    if (far.hold(ep)) {
        return false;
    }
    if (!is_of_this_machine(ucx, ep)) {
        far.add(ep);
        return false;
    }
    place.store(ep, std::memory_order_relaxed);
    return true;
}

}  // namespace

bool ucx_takes_gpu_memory() noexcept {
    return std::strcmp(gpu::platform::instance().name(), "cuda") == 0
               ? missing_for_detection() == nullptr
               : config().contiguous == "y" &&
                     uct::least_contiguous.load(std::memory_order_relaxed) <= 1;
}

// Most messages lie in host memory, or in GPU memory that UCX handles well: what is no longer so
// goes UCX's way for a while. How processes share memory decides, not its kind: UCX moves pools and
// managed memory through the host alike.
bool is_memory_for_us(const ucx_instance &ucx, const void *buffer) noexcept {
    static remembered<21> others;  // the driver gives memory out of blocks of this size
    if (others.hold(buffer)) {
        return false;
    }
    const gpu::memory_info memory = gpu::platform::instance().query(buffer);
    if (gpu::is_on_gpu(memory.kind) &&
        (config().contiguous == "y" || !ucx_shares(ucx, memory.allocation.shared))) {
        return true;
    }
    others.add(buffer);
    return false;
}

bool is_better_ours(const ucx_instance &ucx, ucp_ep_h ep, const void *buffer) {
    return sees_gpu_memory() && is_memory_for_us(ucx, buffer) && is_near(ucx, ep);
}

bool is_to_be_buffered(const ucx_instance &ucx, ucp_ep_h ep, const void *buffer,
                       gpu::known_memory *known) {
    if (!sees_gpu_memory()) {
        return false;
    }
    const gpu::memory_kind kind = known->look(buffer).kind;
    if (kind == gpu::memory_kind::host) {
        blocks_on_host.add(buffer);
    }
    // UCX does not read managed memory by our gets, and sends few bytes of it eagerly by itself.
    return kind == gpu::memory_kind::device && is_near(ucx, ep);
}

}  // namespace cuda_nc::hooks
