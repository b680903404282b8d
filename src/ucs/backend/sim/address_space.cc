#include "ucs/backend/sim/address_space.hpp"

#include <algorithm>
#include <mutex>

namespace cuda_nc::gpu::sim {
namespace {

// The allocation, or its piece, that holds `address`.
allocation_info allocation_of(const region &all, uintptr_t address) noexcept {
    allocation_info one = {reinterpret_cast<char *>(all.begin), all.end - all.begin, all.id,
                           all.shared};
    if (all.piece != 0) {
        const uint64_t number = (address - all.begin) / all.piece;
        one.base += number * all.piece;
        one.size = std::min(all.piece, one.size - number * all.piece);
        one.id = all.id << 24 | (number + 1);
    }
    return one;
}

}  // namespace

void address_space::add_range(int device, uintptr_t begin, uintptr_t end) {
    ranges_.push_back({begin, end, device});
}

void address_space::add(region one) {
    std::unique_lock<std::shared_mutex> guard(mutex_);
    one.id = ++last_id_;
    regions_.emplace(one.begin, one);
    if (one.everywhere) {
        elsewhere_.fetch_add(1, std::memory_order_release);
    }
}

void address_space::remove(uintptr_t begin) noexcept {
    std::unique_lock<std::shared_mutex> guard(mutex_);
    auto found = regions_.find(begin);
    if (found != regions_.end()) {
        if (found->second.everywhere) {
            elsewhere_.fetch_sub(1, std::memory_order_release);
        }
        regions_.erase(found);
    }
}

void address_space::set_sharing(uintptr_t begin, sharing how, size_t piece) noexcept {
    std::unique_lock<std::shared_mutex> guard(mutex_);
    auto found = regions_.find(begin);
    if (found != regions_.end()) {
        found->second.shared = how;
        found->second.piece = piece;
    }
}

bool address_space::find(const void *address, size_t length, region *region_p) const noexcept {
    auto wanted = reinterpret_cast<uintptr_t>(address);
    std::shared_lock<std::shared_mutex> guard(mutex_);
    auto next = regions_.upper_bound(wanted);
    if (next == regions_.begin()) {
        return false;
    }
    const region &candidate = std::prev(next)->second;
    if (!candidate.holds(wanted, length)) {
        return false;
    }
    *region_p = candidate;
    return true;
}

memory_info address_space::query(const void *address) const noexcept {
    auto wanted = reinterpret_cast<uintptr_t>(address);
    for (const range &one : ranges_) {
        if (wanted >= one.begin && wanted < one.end) {
            region found;
            if (!find(address, 1, &found)) {
                return {memory_kind::device, one.device};
            }
            return {memory_kind::device, one.device, allocation_of(found, wanted)};
        }
    }
    region found;
    if (elsewhere_.load(std::memory_order_acquire) == 0 || !find(address, 1, &found)) {
        return {};
    }
    if (found.kind == memory_kind::managed) {
        return {found.kind, found.device, allocation_of(found, wanted)};
    }
    return {found.kind, found.device};
}

}  // namespace cuda_nc::gpu::sim
