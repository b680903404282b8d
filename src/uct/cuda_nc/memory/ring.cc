#include "uct/cuda_nc/memory/ring.hpp"

#include <algorithm>

#include "ucs/base/bits.hpp"
#include "ucs/base/settings.hpp"

namespace cuda_nc::uct {
namespace {

constexpr size_t smallest_slot = size_t(64) << 10;

struct lender {
    region (*take)(int device, size_t size) noexcept;
    size_t (*left)() noexcept;
};
constexpr lender on_gpus = {acquire_region, lendable},
                 on_the_host = {acquire_host_region, lendable_on_host};

// As many slots as said, smaller where there is no memory for such large ones.
ring take_slots(const lender &from, int device, unsigned num_slots, size_t slot_size) noexcept {
    ring taken;
    taken.num_slots = num_slots;
    for (; !taken.memory && slot_size >= smallest_slot / 2; slot_size /= 2) {
        taken.slot_size = slot_size;
        taken.memory = from.take(device, slot_size * num_slots);
    }
    return taken;
}

// A quarter of the message, so that packing and unpacking overlap; not below what a launch is
// worth. Half of what is left stays for other messages.
ring take_quarters(const lender &from, int device, uint64_t bytes) noexcept {
    constexpr uint64_t least = 128 << 10, most = 4 << 20, step = 4 << 10;
    const uint64_t quarter = round_up(bytes / ring::most_slots, step);
    const size_t room = std::min(config().staging_size / 8, from.left() / 2);
    auto size = static_cast<size_t>(std::min(std::max(quarter, least), most));
    while (size > smallest_slot && size * ring::most_slots > room) {
        size /= 2;
    }
    return take_slots(from, device, ring::most_slots, size);
}

// Two processes' kernels take turns on their GPU, and each turn costs more than most messages:
// nothing overlaps, and fewest turns are best.
ring take_whole(const lender &from, int device, uint64_t bytes) noexcept {
    size_t size = smallest_slot;
    for (const size_t room = from.left() / 2; size < bytes && size * 2 <= room;) {
        size *= 2;
    }
    return take_slots(from, device, 1, size);
}

}  // namespace

ring acquire_ring(int device, uint64_t bytes, bool same_gpu, bool on_host) noexcept {
    const auto take = same_gpu ? take_whole : take_quarters;
    ring taken;
    if (!on_host) {
        taken = take(on_gpus, device, bytes);
    }
    if (!taken) {
        taken = take(on_the_host, device, bytes);
        taken.on_host = true;
    }
    return taken;
}

ring acquire_gpu_ring(int device, uint64_t bytes) noexcept {
    return take_quarters(on_gpus, device, bytes);
}

}  // namespace cuda_nc::uct
