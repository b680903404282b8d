#include "uct/cuda_nc/memory/peer_memory.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <tuple>
#include <utility>

#include "ucs/base/log.hpp"
#include "ucs/gpu/shared_memory.hpp"
#include "uct/cuda_nc/counters.hpp"
#include "uct/cuda_nc/memory/lent_memory.hpp"
#include "uct/cuda_nc/memory/room_by_need.hpp"

namespace cuda_nc::uct {
namespace {

constexpr int host = -1;

// After a failure to open what a user has allocated: its owner may have been too busy to answer, or
// this process may have had no descriptors left. Doubled each time: it may be that nothing helps,
// and others wait meanwhile.
constexpr auto time_until_retry = std::chrono::seconds(1),
               longest_time_until_retry = 64 * time_until_retry;

struct key {
    int place;  // the device that reaches it; host: pinned there, for all
    gpu::ipc_handle handle;

    bool operator<(const key &other) const noexcept {
        return place != other.place
                   ? place < other.place
                   : std::memcmp(handle.bytes, other.handle.bytes, sizeof(handle.bytes)) < 0;
    }
};

struct allocation {
    std::shared_ptr<gpu::memory> memory;
    process_id owner;
};

// What the user of another process has allocated: there is one at an address at a time, but for
// spans of pieces, which coexist.
struct user_key {
    int place;
    process_id owner;
    uint64_t base;
    uint64_t span;  // its id; 0: no span of pieces

    auto place_and_owner() const noexcept {
        return std::tie(place, owner.pid, owner.pid_space, owner.started);
    }
    bool operator<(const user_key &other) const noexcept {
        return std::tuple_cat(place_and_owner(), std::tie(base, span)) <
               std::tuple_cat(other.place_and_owner(), std::tie(other.base, other.span));
    }
};

struct user_allocation {
    std::shared_ptr<gpu::memory> memory;  // null: it could not be opened
    gpu::ipc_handle handle;
    uint64_t id;
    std::chrono::steady_clock::time_point opened;  // or tried
    std::chrono::seconds until_retry;
    uint64_t last_use = 0;

    bool is(const gpu::ipc_handle &other, uint64_t other_id) const noexcept {
        return id == other_id && std::memcmp(handle.bytes, other.bytes, sizeof(handle.bytes)) == 0;
    }
    bool is_due() const noexcept {
        return std::chrono::steady_clock::now() - opened >= until_retry;
    }
};

struct opened {
    std::mutex mutex;
    std::map<key, allocation> all;
    std::map<user_key, user_allocation> of_users;
    uint64_t uses = 0;                                 // of users' allocations
    room_by_need<std::pair<user_key, uint64_t>> room;  // for them, by their ids
    // The one that was used last: most messages come from where the one before them came from.
    using user_place = std::map<user_key, user_allocation>::iterator;
    user_place recent = of_users.end();

    user_place erase(user_place at) noexcept {
        recent = of_users.end();
        return of_users.erase(at);
    }
    bool is_recent(int place, const process_id &owner, uint64_t base, uint64_t id,
                   const gpu::ipc_handle &handle) const noexcept {
        return recent != of_users.end() && recent->first.base == base &&
               recent->first.place == place && recent->first.owner == owner &&
               recent->second.memory != nullptr && recent->second.is(handle, id);
    }

    // The caller holds the lock.
    void close_unused() noexcept {
        // The system is asked once for owners that follow each other, as those of users' do.
        process_id asked = {};
        bool asked_is_gone = false;
        const auto has_gone = [&](const process_id &owner) {
            if (owner != asked || asked == process_id{}) {
                asked = owner;
                asked_is_gone = is_gone(owner);
            }
            return asked_is_gone;
        };
        for (auto at = all.begin(); at != all.end();) {
            bool unused = at->second.memory.use_count() == 1 && has_gone(at->second.owner);
            at = unused ? all.erase(at) : std::next(at);
        }
        const size_t before = of_users.size();
        for (auto at = of_users.begin(); at != of_users.end();) {
            bool unused = is_idle(at->second) && has_gone(at->first.owner);
            at = unused ? erase(at) : std::next(at);
        }
        if (of_users.size() != before) {
            room.shrink_to(of_users.size());
        }
    }

    static bool is_idle(const user_allocation &one) noexcept { return one.memory.use_count() <= 1; }

    template <typename F>
    void close_idle_of_users(F &&chosen) noexcept {
        for (auto at = of_users.begin(); at != of_users.end();) {
            const bool closes = is_idle(at->second) && chosen(at->first);
            at = closes ? erase(at) : std::next(at);
        }
    }

    // Where one more was opened. What could not be opened takes no room.
    void make_room(const user_key &coming, uint64_t id) noexcept {
        const auto is_open = [](const auto &one) { return one.second.memory != nullptr; };
        const auto open =
            static_cast<size_t>(std::count_if(of_users.begin(), of_users.end(), is_open));
        for (size_t left = room.to_close(room.forget({coming, id}), open); left != 0; --left) {
            const user_place oldest = least_recently_used(true);
            if (oldest == of_users.end()) {
                return;
            }
            room.remember({oldest->first, oldest->second.id});
            erase(oldest);
        }
    }

    // Where one more could not be opened: those are bounded, too.
    void forget_one_that_failed() noexcept {
        if (of_users.size() >= 2 * room.most) {
            const user_place oldest = least_recently_used(false);
            if (oldest != of_users.end()) {
                erase(oldest);
            }
        }
    }

    // Of those that are open and that nobody uses now, or of those that could not be opened.
    user_place least_recently_used(bool is_open) noexcept {
        auto oldest = of_users.end();
        for (auto at = of_users.begin(); at != of_users.end(); ++at) {
            if (is_idle(at->second) && (at->second.memory != nullptr) == is_open &&
                (oldest == of_users.end() || at->second.last_use < oldest->second.last_use)) {
                oldest = at;
            }
        }
        return oldest;
    }
};

opened &of_peers() noexcept {
    static auto *only = new opened;  // outlives every thread
    return *only;
}

// As `device` reaches it, or null.
std::unique_ptr<gpu::memory> open_on_gpu(int device, const gpu::ipc_handle &handle) {
    gpu::platform &gpus = gpu::platform::instance();
    gpu::device *from = gpus.get_device(device);
    std::unique_ptr<gpu::memory> memory;
    ucs_status_t status = from != nullptr ? from->ipc_open(handle, &memory) : UCS_ERR_NO_DEVICE;
    if (status != UCS_OK) {
        nc_debug("a peer's GPU memory cannot be opened: %s", status_text(status));
        return nullptr;
    }
    // Not by query(): that would make a context on the peer's GPU.
    const int owner = gpus.device_of(memory->address());
    if (owner < 0 || !from->can_access_peer(owner)) {
        nc_debug("GPU %d does not reach the peer's memory", device);
        return nullptr;
    }
    return memory;
}

std::unique_ptr<gpu::memory> open_on_host(int device, const gpu::ipc_handle &handle) {
    gpu::device *by = gpu::platform::instance().get_device(device);
    std::unique_ptr<gpu::memory> memory;
    ucs_status_t status =
        by != nullptr ? gpu::open_shared_memory(*by, handle, &memory) : UCS_ERR_NO_DEVICE;
    if (status != UCS_OK) {
        nc_debug("a peer's pinned memory cannot be opened: %s", status_text(status));
        return nullptr;
    }
    return memory;
}

peer_memory reach(bool on_host, int device, const gpu::ipc_handle &handle, const process_id &owner,
                  uint64_t offset, uint64_t length) {
    if (is_own(owner)) {  // from us to us
        return {nullptr, find_lent(device, handle, offset, length)};
    }
    opened &peers = of_peers();
    std::lock_guard<std::mutex> guard(peers.mutex);
    const key name = {on_host ? host : device, handle};
    auto found = peers.all.find(name);
    if (found != peers.all.end() && found->second.owner != owner) {
        if (found->second.memory.use_count() != 1) {
            return {};
        }
        peers.all.erase(found);  // what the handle meant may be gone
        found = peers.all.end();
    }
    if (found == peers.all.end()) {
        peers.close_unused();
        std::shared_ptr<gpu::memory> memory =
            on_host ? open_on_host(device, handle) : open_on_gpu(device, handle);
        if (memory == nullptr) {
            return {};
        }
        found = peers.all.emplace(name, allocation{std::move(memory), owner}).first;
    }
    const std::shared_ptr<gpu::memory> &memory = found->second.memory;
    if (length > memory->size() || offset > memory->size() - length) {
        return {};
    }
    return {memory, memory->address() + offset};
}

}  // namespace

peer_memory reach_peer_memory(int device, const gpu::ipc_handle &handle, const process_id &owner,
                              uint64_t offset, uint64_t length, size_t alignment) noexcept try {
    peer_memory found = reach(false, device, handle, owner, offset, length);
    if (reinterpret_cast<uintptr_t>(found.address) % alignment != 0) {
        return {};
    }
    return found;
} catch (const std::bad_alloc &) {
    return {};
}

peer_memory reach_peer_host_memory(int device, const gpu::ipc_handle &handle,
                                   const process_id &owner, uint64_t offset,
                                   uint64_t length) noexcept try {
    return reach(true, device, handle, owner, offset, length);
} catch (const std::bad_alloc &) {
    return {};
}

// Another library wants the place of one of them, whichever that is.
void close_idle_memory_of_users() noexcept {
    opened &peers = of_peers();
    std::lock_guard<std::mutex> guard(peers.mutex);
    peers.close_idle_of_users([](const user_key &) { return true; });
}

namespace {

std::atomic<bool> is_watching{false};

bool watch_ipc_conflicts() noexcept {
    is_watching = gpu::platform::instance().watch_ipc_conflicts(close_idle_memory_of_users);
    return is_watching;
}

}  // namespace

void watch_new_libraries() noexcept {
    if (is_watching) {
        watch_ipc_conflicts();
    }
}

peer_memory reach_user_memory(int device, const gpu::ipc_handle &handle, const process_id &owner,
                              uint64_t id, uint64_t base, bool at_once) noexcept try {
    static const bool may_keep = watch_ipc_conflicts();
    if (!may_keep) {
        return {};
    }
    opened &peers = of_peers();
    std::lock_guard<std::mutex> guard(peers.mutex);
    if (peers.is_recent(device, owner, base, id, handle)) {
        peers.recent->second.last_use = ++peers.uses;
        return {peers.recent->second.memory, peers.recent->second.memory->address()};
    }
    const gpu::device *const by = gpu::platform::instance().get_device(device);
    const bool coexists = by != nullptr && by->ipc_coexists(handle);
    const user_key name = {device, owner, base, coexists ? id : 0};
    auto found = peers.of_users.find(name);
    if (found != peers.of_users.end() && !found->second.is(handle, id)) {
        if (!opened::is_idle(found->second)) {
            return {};
        }
        peers.erase(found);  // its place is another's now
        found = peers.of_users.end();
    }
    std::optional<std::chrono::steady_clock::time_point> tried;
    auto until_retry = time_until_retry;
    if (found != peers.of_users.end() && found->second.memory == nullptr) {
        const user_allocation &failed = found->second;
        const bool is_due = failed.is_due();
        if (is_due || at_once) {
            // A trial ahead of its time says nothing of how long others should wait.
            until_retry = is_due ? std::min(2 * failed.until_retry, longest_time_until_retry)
                                 : failed.until_retry;
            if (!is_due) {
                tried = failed.opened;
            }
            peers.erase(found);
            found = peers.of_users.end();
        }
    }
    if (found == peers.of_users.end()) {
        if (!tried) {
            tried = std::chrono::steady_clock::now();
        }
        peers.close_unused();
        std::shared_ptr<gpu::memory> memory = open_on_gpu(device, handle);
        // Perhaps some of its place still belongs to one that is gone.
        if (memory == nullptr && !coexists) {
            peers.close_idle_of_users([&](const user_key &other) {
                return other.place_and_owner() == name.place_and_owner();
            });
            memory = open_on_gpu(device, handle);
        }
        if (memory != nullptr) {
            count(counters::all().mappings);
            peers.make_room(name, id);
        } else {
            peers.forget_one_that_failed();
        }
        found =
            peers.of_users
                .emplace(name, user_allocation{std::move(memory), handle, id, *tried, until_retry})
                .first;
    }
    found->second.last_use = ++peers.uses;
    if (found->second.memory == nullptr) {
        return {};
    }
    peers.recent = found;
    return {found->second.memory, found->second.memory->address()};
} catch (const std::bad_alloc &) {
    return {};
}

bool close_memory_of_the_gone() noexcept {
    opened &peers = of_peers();
    std::lock_guard<std::mutex> guard(peers.mutex);
    peers.close_unused();
    return std::any_of(peers.all.begin(), peers.all.end(),
                       [](const auto &one) {
                           return one.second.memory.use_count() == 1 &&
                                  can_be_seen(one.second.owner);
                       }) ||
           std::any_of(peers.of_users.begin(), peers.of_users.end(), [](const auto &one) {
               return one.second.memory != nullptr && opened::is_idle(one.second) &&
                      can_be_seen(one.first.owner);
           });
}

size_t peer_allocations_open() noexcept {
    opened &peers = of_peers();
    std::lock_guard<std::mutex> guard(peers.mutex);
    return peers.all.size() + peers.of_users.size();
}

}  // namespace cuda_nc::uct
