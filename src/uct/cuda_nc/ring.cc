#include "uct/cuda_nc/ring.hpp"

#include <algorithm>

#include "ucs/base/settings.hpp"

namespace cuda_nc::uct {
namespace {

constexpr size_t largest_slot = size_t(4) << 20;
constexpr size_t smallest_slot = size_t(64) << 10;

// A quarter of the message, so that packing and unpacking overlap; not below what a launch is
// worth.
size_t choose_slot_size(uint64_t bytes) noexcept {
    constexpr uint64_t least = 128 << 10, step = 4 << 10;
    uint64_t quarter = (bytes / ring::num_slots + step - 1) / step * step;
    size_t limit = largest_slot;
    while (limit > smallest_slot && limit * ring::num_slots > config().staging_size / 8) {
        limit /= 2;
    }
    return static_cast<size_t>(std::min<uint64_t>(std::max(quarter, least), limit));
}

}  // namespace

ring take_ring(int device, uint64_t bytes) noexcept {
    ring taken;
    taken.slot_size = choose_slot_size(bytes);
    taken.memory = take_region(device, taken.slot_size * ring::num_slots);
    return taken;
}

}  // namespace cuda_nc::uct
