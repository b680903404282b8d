#include "uct/cuda_nc/one_sided/key.hpp"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <new>
#include <unordered_set>

#include "ucs/gpu/span.hpp"
#include "uct/cuda_nc/memory/shared_handle.hpp"
#include "uct/cuda_nc/memory/this_machine.hpp"
#include "uct/cuda_nc/one_sided/mover.hpp"

namespace cuda_nc::uct {

packed_key make_key(int device, uint64_t address, uint64_t length,
                    std::shared_ptr<void> *keeper_p) noexcept {
    packed_key key = {};
    key.version = one_sided_version;
    key.host = this_machine();
    gpu::device *gpu = gpu::platform::instance().get_device(device);
    const gpu::memory_info found =
        gpu::platform::instance().query(reinterpret_cast<const void *>(address));
    const gpu::allocation_info memory =
        gpu::find_span(found.device, found.allocation, address, address + length);
    if (gpu == nullptr || found.device != device ||
        !find_shared_handle(*gpu, memory, &key.memory, keeper_p)) {
        return key;
    }
    key.process = own_process_id();
    key.allocation = memory.id;
    key.base = reinterpret_cast<uintptr_t>(memory.base);
    key.size = memory.size;
    key.begin = address;
    key.length = length;
    if (key.process != process_id{} && allocation_holds(key, address, length)) {
        key.is_shared = sharing::gpu_memory;
    }
    return key;
}

packed_key make_host_key(uint64_t address, uint64_t length) noexcept {
    packed_key key = {};
    key.version = one_sided_version;
    key.host = this_machine();
    key.process = own_process_id();
    key.base = key.begin = address;
    key.size = key.length = length;
    if (key.process != process_id{} && length <= UINT64_MAX - address) {
        key.is_shared = sharing::host_memory;
    }
    return key;
}

peer_memory remote_key::reach(int device, bool at_once) const noexcept {
    peer_memory memory = reach_user_memory(device, packed_.memory, packed_.process,
                                           packed_.allocation, packed_.base, at_once);
    // What the peer says of its size is not trusted.
    if (memory && memory.keeper->size() < packed_.size) {
        return {};
    }
    return memory;
}

remote_key::note *remote_key::note_for(int lane) noexcept try {
    if (!has_first_) {
        has_first_ = true;
        first_lane_ = lane;
    }
    if (lane == first_lane_) {
        return &first_;
    }
    constexpr int directions = 2;
    const auto place = static_cast<size_t>(
        lane < list_mover::unreached ? -lane % directions : lane - list_mover::unreached);
    if (place >= notes_.size()) {
        notes_.resize(place + 1);
    }
    return &notes_[place];
} catch (const std::bad_alloc &) {
    return nullptr;
}

namespace {

struct known_keys {
    std::mutex mutex;
    std::unordered_set<uintptr_t> handles;
};

known_keys &get_keys() noexcept {
    static auto *only = new known_keys;  // keys may be released while the process exits
    return *only;
}

bool is_key(uintptr_t handle) noexcept {
    known_keys &keys = get_keys();
    std::lock_guard<std::mutex> guard(keys.mutex);
    return keys.handles.count(handle) != 0;
}

}  // namespace

bool add_key(const remote_key &made) noexcept try {
    known_keys &keys = get_keys();
    std::lock_guard<std::mutex> guard(keys.mutex);
    keys.handles.insert(handle_of(made));
    return true;
} catch (const std::bad_alloc &) {
    return false;
}

void remove_key(const remote_key &released) noexcept {
    known_keys &keys = get_keys();
    std::lock_guard<std::mutex> guard(keys.mutex);
    keys.handles.erase(handle_of(released));
}

// Lists have many blocks and few keys: those seen before are not looked up again.
bool are_keys(const uintptr_t *handles, size_t number) noexcept {
    constexpr size_t places = 16;
    uintptr_t seen[places];
    if (number == 0 || !is_key(handles[0])) {
        return number == 0;
    }
    std::fill(seen, seen + places, handles[0]);
    for (size_t i = 1; i < number; ++i) {
        uintptr_t &place = seen[handles[i] / alignof(std::max_align_t) % places];
        if (place != handles[i] && !is_key(handles[i])) {
            return false;
        }
        place = handles[i];
    }
    return true;
}

}  // namespace cuda_nc::uct
