#include "hooks/common/contiguous.hpp"

#include <array>
#include <atomic>
#include <cstring>

#include "hooks/common/gpu_presence.hpp"
#include "ucp/dt/ucp_api.hpp"
#include "ucs/base/settings.hpp"

namespace cuda_nc::hooks {
namespace {

// Asking for the kind of memory takes 0.1 to 0.2 us, and most messages lie in host memory, or in
// GPU memory that UCX handles well. So it is remembered for some blocks of addresses that what was
// found there was none for us. Where that is no longer true, messages go UCX's way for a while.
// Thread safe: an update that is lost makes that while no longer than twice.
class blocks_of_others {
  public:
    // Whether this is one of them. After some hundred times it is not, so that it is asked again.
    bool hold(const void *address) noexcept {
        std::atomic<uint64_t> &one = place_of(address);
        const uint64_t seen = one.load(std::memory_order_relaxed);
        if (seen >> uses_bits != block_of(address) || seen % (1 << uses_bits) == 0) {
            return false;
        }
        one.store(seen - 1, std::memory_order_relaxed);
        return true;
    }
    void add(const void *address) noexcept {
        place_of(address).store(block_of(address) << uses_bits | uses, std::memory_order_relaxed);
    }

  private:
    static constexpr unsigned uses_bits = 10, uses = 500;
    // The driver gives memory out of blocks of this size.
    static uint64_t block_of(const void *address) noexcept {
        return reinterpret_cast<uintptr_t>(address) >> 21;
    }
    std::atomic<uint64_t> &place_of(const void *address) noexcept {
        return entries_[block_of(address) % entries_.size()];
    }

    std::array<std::atomic<uint64_t>, 64> entries_{};  // the block, and how often it holds yet
};

// UCX 1.22 shares memory by file descriptors.
bool ucx_shares(const ucx_instance &ucx, gpu::sharing how) noexcept {
    return how == gpu::sharing::by_handle ||
           (how == gpu::sharing::by_descriptor && ucx.at_least(1, 22));
}

// Whether our transport leads to another process of this machine: its device is "memory" then. A
// process's own endpoint has the transport self, and copies within a process are UCX's.
bool is_of_this_machine(const ucx_instance &ucx, ucp_ep_h ep) noexcept {
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
// its messages then go by our way to other hosts.
bool is_near(const ucx_instance &ucx, ucp_ep_h ep) noexcept {
    static std::array<std::atomic<ucp_ep_h>, 1024> near;
    std::atomic<ucp_ep_h> &place = near[(reinterpret_cast<uintptr_t>(ep) >> 6) % near.size()];
    if (place.load(std::memory_order_relaxed) == ep) {
        return true;
    }
    if (!is_of_this_machine(ucx, ep)) {
        return false;
    }
    place.store(ep, std::memory_order_relaxed);
    return true;
}

}  // namespace

bool is_memory_for_us(const ucx_instance &ucx, const void *buffer) noexcept {
    static blocks_of_others others;
    if (others.hold(buffer)) {
        return false;
    }
    const gpu::memory_info memory = gpu::platform::instance().query(buffer);
    if (memory.kind == gpu::memory_kind::device &&
        (config().contiguous == "y" || !ucx_shares(ucx, memory.allocation.shared))) {
        return true;
    }
    others.add(buffer);
    return false;
}

bool is_better_ours(const ucx_instance &ucx, ucp_ep_h ep, const void *buffer) noexcept {
    return sees_gpu_memory() && is_memory_for_us(ucx, buffer) && is_near(ucx, ep);
}

bool is_to_be_buffered(const ucx_instance &ucx, ucp_ep_h ep, const void *buffer) noexcept {
    static blocks_of_others others;
    if (!sees_gpu_memory() || others.hold(buffer)) {
        return false;
    }
    if (gpu::platform::instance().query(buffer).kind != gpu::memory_kind::device) {
        others.add(buffer);
        return false;
    }
    return is_near(ucx, ep);
}

}  // namespace cuda_nc::hooks
