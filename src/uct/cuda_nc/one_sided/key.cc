#include "uct/cuda_nc/one_sided/key.hpp"

#include <new>

#include "ucs/gpu/span.hpp"
#include "uct/cuda_nc/memory/shared_handle.hpp"
#include "uct/cuda_nc/memory/this_machine.hpp"

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
    key.is_shared = remote_key(key).contains(address, length) ? 1 : 0;
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

remote_key::note *remote_key::note_for(int device) noexcept try {
    const auto place = static_cast<size_t>(device + 1);  // from list_mover::unreached on
    if (place >= notes_.size()) {
        notes_.resize(place + 1);
    }
    return &notes_[place];
} catch (const std::bad_alloc &) {
    return nullptr;
}

}  // namespace cuda_nc::uct
