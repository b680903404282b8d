#include "uct/cuda_nc/ring.hpp"

#include <algorithm>

#include "ucs/base/settings.hpp"

namespace cuda_nc::uct {
namespace {

constexpr size_t smallest_slot = size_t(64) << 10;

// A quarter of the message, so that packing and unpacking overlap; not below what a launch is
// worth.
ring take_quarters(int device, uint64_t bytes) noexcept {
    constexpr size_t largest_slot = size_t(4) << 20;
    constexpr uint64_t least = 128 << 10, step = 4 << 10;
    uint64_t quarter = (bytes / ring::most_slots + step - 1) / step * step;
    size_t limit = largest_slot;
    while (limit > smallest_slot && limit * ring::most_slots > config().staging_size / 8) {
        limit /= 2;
    }
    ring taken;
    taken.slot_size = static_cast<size_t>(std::min<uint64_t>(std::max(quarter, least), limit));
    taken.num_slots = ring::most_slots;
    taken.memory = take_region(device, taken.slot_size * ring::most_slots);
    return taken;
}

// Two processes' kernels take turns on their GPU, and each turn costs more than most messages:
// nothing overlaps, and fewest turns are best. Half of what is left stays for other messages.
ring take_whole(int device, uint64_t bytes) noexcept {
    size_t size = smallest_slot;
    for (const size_t room = lendable() / 2; size < bytes && size * 2 <= room;) {
        size *= 2;
    }
    ring taken;
    for (; !taken.memory && size >= smallest_slot; size /= 2) {
        taken.slot_size = size;
        taken.memory = take_region(device, size);
    }
    taken.num_slots = 1;
    return taken;
}

}  // namespace

ring take_ring(int device, uint64_t bytes, bool same_gpu) noexcept {
    return same_gpu ? take_whole(device, bytes) : take_quarters(device, bytes);
}

}  // namespace cuda_nc::uct
