#include "uct/cuda_nc/protocol/source.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "ucs/base/log.hpp"
#include "ucs/gpu/span.hpp"
#include "uct/cuda_nc/memory/shared_handle.hpp"

namespace cuda_nc::uct {
namespace {

// Whether bytes [displacement_0 + lower, displacement_0 + upper) lie in `size` bytes.
bool inside(int64_t displacement_0, const layout &what, uint64_t size) noexcept {
    int64_t begin, end;
    return !__builtin_add_overflow(displacement_0, what.lower_bound(), &begin) &&
           !__builtin_add_overflow(displacement_0, what.upper_bound(), &end) && begin >= 0 &&
           begin <= end && static_cast<uint64_t>(end) <= size;
}

// Null where the numbers make no sense. Throws std::bad_alloc.
layout_ref layout_of(const wire::source_descriptor &descriptor) {
    if (descriptor.num_dims > max_dims || descriptor.block_length == 0) {
        return nullptr;
    }
    layout_builder one;
    one.append(descriptor.first_displacement, descriptor.block_length);
    layout_ref made = one.finish();
    for (uint32_t d = 0; d < descriptor.num_dims && made != nullptr; ++d) {
        uint64_t bytes;
        if (descriptor.dims[d].count == 0 ||
            __builtin_mul_overflow(made->packed_size(), descriptor.dims[d].count, &bytes) ||
            bytes > gpu::max_pipe_length) {
            return nullptr;
        }
        made = made->repeat(descriptor.dims[d].count, descriptor.dims[d].stride);
    }
    return made;
}

// Whether the described blocks lie to each other as the target's do. The source's displacement 0 is
// then to be moved by *shift_p. So it is with the faces of equal boxes, sent and received.
bool is_moved(const wire::source_descriptor &descriptor, const layout_view &target,
              int64_t *shift_p) noexcept {
    if (descriptor.is_list != 0 || target.num_blocks != 1 ||
        descriptor.num_dims != target.num_dims || descriptor.block_length != target.list_size) {
        return false;
    }
    for (unsigned d = 0; d < target.num_dims; ++d) {
        if (descriptor.dims[d].count != target.dims[d].count ||
            descriptor.dims[d].stride != target.dims[d].stride) {
            return false;
        }
    }
    int64_t shift;
    const bool fits =
        !__builtin_sub_overflow(descriptor.first_displacement, target.first_displacement, &shift);
    *shift_p = fits ? shift : 0;
    return fits;
}

// Memory is read in sectors, and so it crosses a link; half a line for each request costs about a
// tenth (measured on two H200: 333 GB/s with blocks of 64 bytes, 365 with longer ones).
uint64_t count_detour(const layout &what) noexcept {
    constexpr uint64_t sector = 32;
    const layout_view &view = what.view();
    const uint64_t blocks = what.total_blocks();
    const uint64_t length = what.packed_size() / std::max<uint64_t>(blocks, 1);
    uint64_t beside = 0;
    if (view.align_log2 < 4 || length % sector != 0) {
        beside = length < sector ? sector - length : sector / 2 + length % sector / 2;
    }
    if (view.num_blocks == 1 && view.num_dims != 0) {  // neighbours share sectors
        const auto stride = static_cast<uint64_t>(view.dims[0].stride);
        const uint64_t pitch = view.dims[0].stride < 0 ? 0 - stride : stride;
        beside = std::min(beside, pitch > length ? pitch - length : 0);
    }
    constexpr uint64_t short_block = 128;
    uint64_t detour;
    if (__builtin_mul_overflow(blocks, beside, &detour)) {
        return UINT64_MAX;
    }
    return detour + (length < short_block ? what.packed_size() / 10 : 0);
}

// Where `memory` lies, for other processes. False: it is not shared, or not known.
bool place_memory(gpu::device &gpu, const gpu::allocation_info &memory,
                  wire::source_descriptor *descriptor_p) {
    if (!find_shared_handle(gpu, memory, &descriptor_p->memory, nullptr)) {
        return false;
    }
    descriptor_p->allocation = memory.id;
    descriptor_p->address = reinterpret_cast<uintptr_t>(memory.base);
    return true;
}

// Of this very process: launches reach what is on their own GPU.
char *find_own(int device, const wire::source_descriptor &descriptor, uint64_t *size_p) noexcept {
    auto *address = reinterpret_cast<char *>(static_cast<uintptr_t>(descriptor.address));
    const gpu::memory_info memory = gpu::platform::instance().query(address);
    if (memory.kind != gpu::memory_kind::device || memory.device != device ||
        memory.allocation.id != descriptor.allocation || memory.allocation.base != address) {
        return nullptr;
    }
    *size_p = memory.allocation.size;
    return address;
}

// The whole allocation, which has *size_p bytes.
peer_memory reach_allocation(int device, const process_id &owner,
                             const wire::source_descriptor &descriptor, uint64_t *size_p) noexcept {
    peer_memory memory;
    if (is_own(owner)) {
        memory.address = find_own(device, descriptor, size_p);
    } else {
        memory = reach_user_memory(device, descriptor.memory, owner, descriptor.allocation,
                                   descriptor.address);
        *size_p = memory ? memory.keeper->size() : 0;
    }
    return memory;
}

}  // namespace

bool is_on(const gpu::device *gpu, const wire::sender_offer &offer) noexcept {
    char place[sizeof(offer.gpu)] = {};
    if (gpu == nullptr) {
        return false;
    }
    const std::string &own = gpu->properties().bus_id;
    std::memcpy(place, own.data(), std::min(own.size(), sizeof(place)));
    return place[0] != '\0' && std::memcmp(place, offer.gpu, sizeof(place)) == 0;
}

bool name_gpu(int device, wire::sender_offer *offer_p) noexcept {
    const gpu::device *gpu = gpu::platform::instance().get_device(device);
    if (gpu == nullptr) {
        return false;
    }
    const std::string &place = gpu->properties().bus_id;
    if (place.empty() || place.size() > sizeof(offer_p->gpu)) {
        return false;
    }
    std::memcpy(offer_p->gpu, place.data(), place.size());
    return true;
}

wire::source_descriptor describe_source(const user_buffer &buffer) noexcept try {
    wire::source_descriptor descriptor = {};
    char *base;
    const layout *what = buffer.laid_out(&base);
    gpu::device *gpu = gpu::platform::instance().get_device(buffer.device());
    if (what == nullptr || gpu == nullptr || what->packed_size() == 0) {
        return descriptor;
    }
    const auto zero = reinterpret_cast<uintptr_t>(base);
    const gpu::allocation_info memory = gpu::find_span(
        buffer.device(), buffer.allocation(), zero + static_cast<uintptr_t>(what->lower_bound()),
        zero + static_cast<uintptr_t>(what->upper_bound()));
    if (!place_memory(*gpu, memory, &descriptor)) {
        return {};
    }
    descriptor.displacement_0 = static_cast<int64_t>(zero - descriptor.address);
    if (!inside(descriptor.displacement_0, *what, memory.size)) {
        return {};
    }
    const layout_view &view = what->view();
    descriptor.is_list = view.num_blocks > 1 ? 1 : 0;
    descriptor.num_dims = view.num_dims;
    descriptor.block_length = view.list_size;
    descriptor.first_displacement = view.first_displacement;
    for (unsigned d = 0; d < view.num_dims; ++d) {
        descriptor.dims[d] = {view.dims[d].count, view.dims[d].stride};
    }
    return descriptor;
} catch (const std::bad_alloc &) {
    return {};
}

wire::source_descriptor describe_memory(const gpu::memory_info &memory, uint64_t address,
                                        uint64_t length) noexcept try {
    wire::source_descriptor descriptor = {};
    gpu::device *gpu = gpu::platform::instance().get_device(memory.device);
    const gpu::allocation_info whole =
        gpu::find_span(memory.device, memory.allocation, address, address + length);
    if (gpu == nullptr || length == 0 || whole.id == 0 || !place_memory(*gpu, whole, &descriptor)) {
        return {};
    }
    descriptor.displacement_0 = static_cast<int64_t>(address - descriptor.address);
    descriptor.block_length = length;
    return descriptor;
} catch (const std::bad_alloc &) {
    return {};
}

bool is_alike(const wire::sender_offer &offer, const layout &target, uint64_t total) noexcept {
    return target.hash() == content_hash{offer.hash_low, offer.hash_high} &&
           target.packed_size() == total;
}

source reach_source(int device, const wire::early_offer &all, const layout &target, uint64_t total,
                    uint64_t most_detour) noexcept try {
    source from;
    const wire::source_descriptor &descriptor = all.source;
    const process_id &sender = all.offer.process;
    const bool known = sender.pid != 0;  // others' ids may be the same
    if (descriptor.allocation == 0 || !known) {
        return from;
    }
    int64_t shift = 0;
    const bool alike =
        is_alike(all.offer, target, total) || is_moved(descriptor, target.view(), &shift);
    if (!alike) {
        // One kernel serves lists, another one what has none.
        from.what = descriptor.is_list == 0 && target.view().num_blocks == 1 ? layout_of(descriptor)
                                                                             : nullptr;
        if (from.what == nullptr) {
            return {};
        }
    }
    const layout &what = alike ? target : *from.what;
    if (what.packed_size() != total || target.packed_size() < total) {
        return {};
    }
    if (count_detour(alike ? what.in_memory_order() : what) > most_detour) {
        return {};
    }
    uint64_t size = 0;
    from.memory = reach_allocation(device, sender, descriptor, &size);
    if (!from.memory) {
        return {};
    }
    int64_t displacement_0;
    if (__builtin_add_overflow(descriptor.displacement_0, shift, &displacement_0) ||
        !inside(displacement_0, what, size)) {
        nc_debug("a sender describes bytes outside its memory");
        return {};
    }
    from.base = reinterpret_cast<char *>(reinterpret_cast<uintptr_t>(from.memory.address) +
                                         static_cast<uintptr_t>(displacement_0));
    return from;
} catch (const std::bad_alloc &) {
    return {};
}

peer_memory reach_memory(int device, const process_id &owner,
                         const wire::source_descriptor &descriptor, uint64_t total) noexcept {
    if (descriptor.allocation == 0 || owner.pid == 0 || descriptor.is_list != 0 ||
        descriptor.num_dims != 0 || descriptor.block_length != total ||
        descriptor.first_displacement != 0) {
        return {};
    }
    uint64_t size = 0;
    peer_memory memory = reach_allocation(device, owner, descriptor, &size);
    const auto offset = static_cast<uint64_t>(descriptor.displacement_0);
    if (memory && (total > size || offset > size - total)) {
        nc_debug("a peer describes bytes outside its memory");
        return {};
    }
    if (memory) {
        memory.address += offset;
    }
    return memory;
}

}  // namespace cuda_nc::uct
