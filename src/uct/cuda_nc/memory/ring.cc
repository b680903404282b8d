#include "uct/cuda_nc/memory/ring.hpp"

#include <algorithm>

#include "ucs/base/bits.hpp"
#include "ucs/base/settings.hpp"

namespace cuda_nc::uct {
namespace {

constexpr size_t smallest_slot = size_t(64) << 10;

struct lender {
    region (*acquire)(int device, size_t size) noexcept;
    size_t (*left)() noexcept;
};
constexpr lender on_gpus = {acquire_region, lendable},
                 on_the_host = {acquire_host_region, lendable_on_host};

// As many slots as said, smaller where there is no memory for such large ones.
ring acquire_slots(const lender &from, int device, unsigned num_slots, size_t slot_size) noexcept {
    ring made;
    made.num_slots = num_slots;
    for (; !made.memory && slot_size >= smallest_slot / 2; slot_size /= 2) {
        made.slot_size = slot_size;
        made.memory = from.acquire(device, slot_size * num_slots);
    }
    return made;
}

// A quarter of the message, so that packing and unpacking overlap; not below what a launch is
// worth. Half of what is left stays for other messages.
ring acquire_quarters(const lender &from, int device, uint64_t bytes) noexcept {
    constexpr uint64_t least = 128 << 10, most = 4 << 20, step = 4 << 10;
    const uint64_t quarter = round_up(divide_up(bytes, ring::most_slots), step);
    const size_t room = std::min(config().staging_size / 8, from.left() / 2);
    auto size = static_cast<size_t>(std::min(std::max(quarter, least), most));
    while (size > smallest_slot && size * ring::most_slots > room) {
        size /= 2;
    }
    return acquire_slots(from, device, ring::most_slots, size);
}

// Two processes' kernels take turns on their GPU, and each turn costs more than most messages:
// nothing overlaps, and fewest turns are best.
ring acquire_whole(const lender &from, int device, uint64_t bytes) noexcept {
    size_t size = smallest_slot;
    for (const size_t room = from.left() / 2; size < bytes && size * 2 <= room;) {
        size *= 2;
    }
    return acquire_slots(from, device, 1, size);
}

}  // namespace

ring acquire_ring(int device, uint64_t bytes, bool same_gpu, bool on_host) noexcept {
    const auto acquire = same_gpu ? acquire_whole : acquire_quarters;
    ring made;
    if (!on_host) {
        made = acquire(on_gpus, device, bytes);
    }
    if (!made) {
        made = acquire(on_the_host, device, bytes);
        made.on_host = true;
    }
    return made;
}

ring acquire_gpu_ring(int device, uint64_t bytes) noexcept {
    return acquire_quarters(on_gpus, device, bytes);
}

}  // namespace cuda_nc::uct
