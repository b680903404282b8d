#include "uct/cuda_nc/one_sided/key.hpp"

#include <new>

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
    if (contains(key, address, length)) {
        key.is_shared = sharing::gpu_memory;
    }
    return key;
}

packed_key make_host_key(uint64_t address, uint64_t length) noexcept {
    packed_key key = {};
    key.version = one_sided_version;
    key.host = this_machine();
    key.process = own_process_id();
    key.base = address;
    key.size = length;
    if (key.process != process_id{} && length <= UINT64_MAX - address) {
        key.is_shared = sharing::host_memory;
    }
    return key;
}

peer_memory remote_key::reach(int device) const noexcept {
    peer_memory memory = reach_user_memory(device, packed_.memory, packed_.process,
                                           packed_.allocation, packed_.base);
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

}  // namespace cuda_nc::uct
