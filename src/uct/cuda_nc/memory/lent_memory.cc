#include "uct/cuda_nc/memory/lent_memory.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "ucs/base/bits.hpp"
#include "ucs/base/log.hpp"
#include "ucs/base/settings.hpp"
#include "ucs/gpu/shared_memory.hpp"
#include "uct/cuda_nc/memory/ipc_block.hpp"

namespace cuda_nc::uct {
namespace {

constexpr unsigned least_log2 = 15;  // bytes of the smallest region
constexpr unsigned usual_log2 = 25;  // ... of an allocation
constexpr unsigned host_log2 = 24;   // ... on the host
constexpr unsigned most_log2 = 31;   // ... and of one for a larger region

constexpr int host = -1;  // in place of a device

}  // namespace

// Halves, and halves of halves: free ones of each size by their number in a row of that size.
struct arena {
    std::unique_ptr<gpu::memory> memory;
    gpu::ipc_handle handle;
    size_t offset = 0;  // of the arena in the peer's view of the memory
    int place = 0;      // a device, or the host
    unsigned size_log2 = 0;
    std::vector<uint32_t> free[most_log2 - least_log2 + 1];

    void reserve() {  // give() allocates nothing
        for (unsigned log2 = least_log2; log2 <= size_log2; ++log2) {
            free[log2 - least_log2].reserve(size_t(1) << (size_log2 - log2));
        }
    }

    // The offset, or -1.
    int64_t take(unsigned log2) noexcept {
        for (unsigned from = log2; from <= size_log2; ++from) {
            std::vector<uint32_t> &row = free[from - least_log2];
            if (row.empty()) {
                continue;
            }
            uint32_t number = row.back();
            row.pop_back();
            while (from > log2) {
                --from;
                number *= 2;
                free[from - least_log2].push_back(number + 1);
            }
            return static_cast<int64_t>(number) << log2;
        }
        return -1;
    }

    void give(size_t at, unsigned log2) noexcept {
        auto number = static_cast<uint32_t>(at >> log2);
        for (; log2 < size_log2; ++log2, number /= 2) {
            std::vector<uint32_t> &row = free[log2 - least_log2];
            auto twin = std::find(row.begin(), row.end(), number ^ 1);
            if (twin == row.end()) {
                break;
            }
            *twin = row.back();
            row.pop_back();
        }
        free[log2 - least_log2].push_back(number);
    }
};

namespace {

struct pool {
    std::mutex mutex;
    std::vector<std::unique_ptr<arena>> arenas;
    size_t lent = 0;            // regions
    bool host_refused = false;  // pinning takes long: it is not tried again
    struct share {
        size_t allocated = 0, lent = 0;  // bytes
    } gpus, host;

    share &of(int place) noexcept { return place == uct::host ? host : gpus; }
    static size_t bound(int place) noexcept {
        return config().staging_size / (place == uct::host ? 8 : 2);
    }
};

pool &all() noexcept {
    static auto *only = new pool;  // outlives every thread
    return *only;
}

unsigned log2_of_region(size_t size) noexcept {
    return std::max(log2_ceil(size), least_log2);
}

ucs_status_t allocate(gpu::device &device, size_t bytes, arena *made) {
    if (made->place == host) {
        return gpu::make_shared_memory(device, bytes, &made->memory, &made->handle);
    }
    ucs_status_t status = device.allocate(in_ipc_blocks(bytes), &made->memory);
    return status != UCS_OK
               ? status
               : device.ipc_export(made->memory->address(), &made->handle, &made->offset);
}

// The caller holds the lock.
arena *make_arena(pool &lent, int place, int device, unsigned wanted_log2) {
    gpu::device *where = gpu::platform::instance().get_device(device);
    const size_t bound = pool::bound(place);
    unsigned log2 = std::min(log2_floor(std::max<size_t>(bound, 1)),
                             std::max(place == host ? host_log2 : usual_log2, wanted_log2));
    if (where == nullptr || log2 < wanted_log2 || (place == host && lent.host_refused)) {
        return nullptr;
    }
    while (lent.of(place).allocated + (size_t(1) << log2) > bound) {
        if (--log2 < wanted_log2) {
            return nullptr;
        }
    }
    auto made = std::make_unique<arena>();
    made->place = place;
    made->size_log2 = log2;
    made->reserve();
    lent.arenas.reserve(lent.arenas.size() + 1);
    ucs_status_t status = allocate(*where, size_t(1) << log2, made.get());
    if (status != UCS_OK) {
        if (place == host) {
            nc_debug("no pinned memory to share: %s", status_text(status));
            lent.host_refused = true;
        }
        return nullptr;
    }
    made->give(0, log2);
    lent.of(place).allocated += size_t(1) << log2;
    lent.arenas.push_back(std::move(made));
    return lent.arenas.back().get();
}

// For `device`, of memory at `place`.
region take(int place, int device, size_t size) noexcept try {
    pool &lent = all();
    if (size > size_t(1) << most_log2) {
        return {};
    }
    unsigned log2 = log2_of_region(size);
    std::lock_guard<std::mutex> guard(lent.mutex);
    arena *owner = nullptr;
    int64_t at = -1;
    for (auto &one : lent.arenas) {
        if (at < 0 && one->place == place && one->size_log2 >= log2) {
            at = one->take(log2);
            owner = one.get();
        }
    }
    if (at < 0) {
        owner = make_arena(lent, place, device, log2);
        if (owner == nullptr) {
            return {};
        }
        at = owner->take(log2);
    }
    ++lent.lent;
    lent.of(place).lent += size_t(1) << log2;
    region taken;
    taken.address = owner->memory->address() + at;
    taken.size = size_t(1) << log2;
    taken.offset = owner->offset + static_cast<size_t>(at);
    taken.owner = owner;
    return taken;
} catch (const std::bad_alloc &) {
    return {};
}

size_t lendable_at(int place) noexcept {
    std::lock_guard<std::mutex> guard(all().mutex);
    const size_t bound = pool::bound(place), lent = all().of(place).lent;
    return bound > lent ? bound - lent : 0;
}

}  // namespace

const gpu::ipc_handle &region::handle() const noexcept {
    return owner->handle;
}

allocated_bytes allocation_of(const region &part) noexcept {
    return {part.owner->memory->address(), size_t(1) << part.owner->size_log2};
}

region acquire_region(int device, size_t size) noexcept {
    return take(device, device, size);
}

region acquire_host_region(int device, size_t size) noexcept {
    return take(host, device, size);
}

void release_region(const region &back) noexcept {
    pool &lent = all();
    std::lock_guard<std::mutex> guard(lent.mutex);
    back.owner->give(static_cast<size_t>(back.address - back.owner->memory->address()),
                     log2_of_region(back.size));
    --lent.lent;
    lent.of(back.owner->place).lent -= back.size;
}

char *find_lent(int device, const gpu::ipc_handle &handle, uint64_t offset,
                uint64_t length) noexcept {
    pool &lent = all();
    std::lock_guard<std::mutex> guard(lent.mutex);
    for (const auto &one : lent.arenas) {
        const size_t size = size_t(1) << one->size_log2;
        if ((one->place == device || one->place == host) &&
            std::memcmp(one->handle.bytes, handle.bytes, sizeof(handle.bytes)) == 0 &&
            offset >= one->offset && length <= size && offset - one->offset <= size - length) {
            return one->memory->address() + (offset - one->offset);
        }
    }
    return nullptr;
}

size_t lendable() noexcept {
    return lendable_at(0);
}

size_t lendable_on_host() noexcept {
    return lendable_at(host);
}

size_t regions_lent() noexcept {
    std::lock_guard<std::mutex> guard(all().mutex);
    return all().lent;
}

}  // namespace cuda_nc::uct
