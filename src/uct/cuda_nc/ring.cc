#include "uct/cuda_nc/ring.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "ucs/base/log.hpp"
#include "ucs/base/settings.hpp"

namespace cuda_nc::uct {
namespace {

constexpr size_t largest_slot = size_t(4) << 20;
constexpr size_t smallest_slot = size_t(64) << 10;

struct pool {
    std::mutex mutex;
    std::vector<ring *> idle, lost;
    size_t bytes = 0;  // of all rings, lost ones too
    size_t number = 0;
    std::map<std::pair<int, std::string>, std::unique_ptr<gpu::memory>> opened;
};

pool &all() noexcept {
    static auto *only = new pool;  // outlives every thread
    return *only;
}

size_t choose_slot_size() noexcept {
    size_t size = largest_slot;
    while (size > smallest_slot && size * ring::num_slots > config().staging_size / 8) {
        size /= 2;
    }
    return size;
}

// The caller holds the lock.
ring *make_ring(pool &rings, int device) {
    gpu::device *where = gpu::platform::instance().get_device(device);
    size_t slot = choose_slot_size(), bytes = slot * ring::num_slots;
    if (where == nullptr || rings.bytes + bytes > config().staging_size / 2) {
        return nullptr;
    }
    auto made = std::make_unique<ring>();
    made->slot_size = slot;
    made->device = device;
    rings.idle.reserve(rings.number + 1);  // give_ring() and lose_ring() cannot fail
    rings.lost.reserve(rings.number + 1);
    if (where->allocate(bytes, &made->memory) != UCS_OK ||
        where->ipc_export(made->memory->address(), &made->handle, &made->offset) != UCS_OK) {
        return nullptr;
    }
    rings.bytes += bytes;
    ++rings.number;
    return made.release();
}

}  // namespace

ring *take_ring(int device) noexcept try {
    pool &rings = all();
    std::lock_guard<std::mutex> guard(rings.mutex);
    auto found = std::find_if(rings.idle.begin(), rings.idle.end(),
                              [&](const ring *one) { return one->device == device; });
    if (found == rings.idle.end()) {
        return make_ring(rings, device);
    }
    ring *one = *found;
    rings.idle.erase(found);
    return one;
} catch (const std::bad_alloc &) {
    return nullptr;
}

void give_ring(ring *back) noexcept {
    pool &rings = all();
    std::lock_guard<std::mutex> guard(rings.mutex);
    rings.idle.push_back(back);
}

void lose_ring(ring *lost) noexcept {
    pool &rings = all();
    std::lock_guard<std::mutex> guard(rings.mutex);
    rings.lost.push_back(lost);
}

size_t rings_lost() noexcept {
    std::lock_guard<std::mutex> guard(all().mutex);
    return all().lost.size();
}

gpu::memory *open_peer_memory(int device, const gpu::ipc_handle &handle) noexcept try {
    gpu::platform &gpus = gpu::platform::instance();
    gpu::device *from = gpus.get_device(device);
    if (from == nullptr) {
        return nullptr;
    }
    pool &rings = all();
    std::lock_guard<std::mutex> guard(rings.mutex);
    auto key = std::make_pair(
        device, std::string(reinterpret_cast<const char *>(handle.bytes), sizeof(handle.bytes)));
    auto known = rings.opened.find(key);
    if (known == rings.opened.end()) {
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
        known = rings.opened.emplace(std::move(key), std::move(memory)).first;
    }
    return known->second.get();
} catch (const std::bad_alloc &) {
    return nullptr;
}

}  // namespace cuda_nc::uct
