#include "uct/cuda_nc/peer_memory.hpp"

#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <new>

#include "ucs/base/log.hpp"

namespace cuda_nc::uct {
namespace {

struct key {
    int device;
    gpu::ipc_handle handle;

    bool operator<(const key &other) const noexcept {
        return device != other.device
                   ? device < other.device
                   : std::memcmp(handle.bytes, other.handle.bytes, sizeof(handle.bytes)) < 0;
    }
};

struct allocation {
    std::shared_ptr<gpu::memory> memory;
    process_id owner;
};

struct opened {
    std::mutex mutex;
    std::map<key, allocation> all;

    // The caller holds the lock.
    void close_unused() noexcept {
        for (auto at = all.begin(); at != all.end();) {
            bool unused = at->second.memory.use_count() == 1 && is_gone(at->second.owner);
            at = unused ? all.erase(at) : std::next(at);
        }
    }
};

opened &of_peers() noexcept {
    static auto *only = new opened;  // outlives every thread
    return *only;
}

std::shared_ptr<gpu::memory> open_allocation(int device, const gpu::ipc_handle &handle,
                                             const process_id &owner) {
    gpu::platform &gpus = gpu::platform::instance();
    gpu::device *from = gpus.get_device(device);
    if (from == nullptr) {
        return nullptr;
    }
    opened &peers = of_peers();
    std::lock_guard<std::mutex> guard(peers.mutex);
    auto known = peers.all.find({device, handle});
    if (known != peers.all.end()) {
        return known->second.memory;
    }
    peers.close_unused();
    std::unique_ptr<gpu::memory> memory;
    ucs_status_t status = from->ipc_open(handle, &memory);
    if (status != UCS_OK) {
        nc_debug("a peer's GPU memory cannot be opened: %s", status_text(status));
        return nullptr;
    }
    gpu::memory_info info = gpus.query(memory->address());
    if (info.kind != gpu::memory_kind::device || !from->can_access_peer(info.device)) {
        nc_debug("GPU %d does not reach the peer's memory", device);
        return nullptr;
    }
    allocation &made = peers.all[{device, handle}];
    made.memory = std::move(memory);
    made.owner = owner;
    return made.memory;
}

}  // namespace

peer_memory reach_peer_memory(int device, const gpu::ipc_handle &handle, const process_id &owner,
                              uint64_t offset, uint64_t length, size_t alignment) noexcept try {
    std::shared_ptr<gpu::memory> memory = open_allocation(device, handle, owner);
    if (memory == nullptr || length > memory->size() || offset > memory->size() - length) {
        return {};
    }
    char *start = memory->address() + offset;
    if (reinterpret_cast<uintptr_t>(start) % alignment != 0) {
        return {};
    }
    return {std::move(memory), start};
} catch (const std::bad_alloc &) {
    return {};
}

void close_memory_of_the_gone() noexcept {
    opened &peers = of_peers();
    std::lock_guard<std::mutex> guard(peers.mutex);
    peers.close_unused();
}

size_t peer_allocations_open() noexcept {
    opened &peers = of_peers();
    std::lock_guard<std::mutex> guard(peers.mutex);
    return peers.all.size();
}

}  // namespace cuda_nc::uct
