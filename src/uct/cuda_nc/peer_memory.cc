#include "uct/cuda_nc/peer_memory.hpp"

#include <cstring>
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

struct opened {
    std::mutex mutex;
    std::map<key, std::unique_ptr<gpu::memory>> all;
};

opened &of_peers() noexcept {
    static auto *only = new opened;  // outlives every thread
    return *only;
}

}  // namespace

gpu::memory *open_peer_memory(int device, const gpu::ipc_handle &handle) noexcept try {
    gpu::platform &gpus = gpu::platform::instance();
    gpu::device *from = gpus.get_device(device);
    if (from == nullptr) {
        return nullptr;
    }
    opened &peers = of_peers();
    std::lock_guard<std::mutex> guard(peers.mutex);
    auto known = peers.all.find({device, handle});
    if (known == peers.all.end()) {
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
        known = peers.all.emplace(key{device, handle}, std::move(memory)).first;
    }
    return known->second.get();
} catch (const std::bad_alloc &) {
    return nullptr;
}

char *reach_peer_memory(int device, const gpu::ipc_handle &handle, uint64_t offset, uint64_t length,
                        size_t alignment) noexcept {
    gpu::memory *memory = open_peer_memory(device, handle);
    if (memory == nullptr || length > memory->size() || offset > memory->size() - length) {
        return nullptr;
    }
    char *start = memory->address() + offset;
    return reinterpret_cast<uintptr_t>(start) % alignment == 0 ? start : nullptr;
}

}  // namespace cuda_nc::uct
