#include "capi/layout_object.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <vector>

#include "capi/error.hpp"

namespace cuda_nc::capi {
namespace {

// ---- handles

constexpr unsigned index_bits = 24;
constexpr size_t slab_places = 4096, most_slabs = (size_t{1} << index_bits) / slab_places;

struct place {
    std::mutex mutex;
    uint64_t generation = 0;  // the high bits of the handle; those of the place's last one
    object_ref object;        // null: free
};

struct handle_table {
    std::mutex mutex;  // guards what follows, but not the slabs' places
    std::vector<uint32_t> free;
    size_t num_slabs = 0;
    std::array<std::atomic<place *>, most_slabs> slabs{};
};

handle_table &get_table() {
    static auto *only = new handle_table;  // layouts may be destroyed while the process exits
    return *only;
}

place *place_at(uint32_t index) noexcept {
    place *slab = get_table().slabs[index / slab_places].load(std::memory_order_acquire);
    return slab != nullptr ? slab + index % slab_places : nullptr;
}

uint32_t take_index() {
    handle_table &table = get_table();
    std::lock_guard<std::mutex> guard(table.mutex);
    if (table.free.empty()) {
        if (table.num_slabs == most_slabs) {
            throw std::bad_alloc();
        }
        table.free.reserve((table.num_slabs + 1) * slab_places);  // give_back() does not throw
        table.slabs[table.num_slabs].store(new place[slab_places], std::memory_order_release);
        const auto first = static_cast<uint32_t>(table.num_slabs++ * slab_places);
        for (uint32_t i = slab_places; i-- > 0;) {
            table.free.push_back(first + i);
        }
    }
    const uint32_t index = table.free.back();
    table.free.pop_back();
    return index;
}

void give_back(uint32_t index) noexcept {
    handle_table &table = get_table();
    std::lock_guard<std::mutex> guard(table.mutex);
    table.free.push_back(index);
}

uint64_t number_of(cuda_nc_layout_t handle) noexcept {
    return reinterpret_cast<uintptr_t>(handle);
}
uint32_t index_of(cuda_nc_layout_t handle) noexcept {
    return static_cast<uint32_t>(number_of(handle) & ((uint64_t{1} << index_bits) - 1));
}

}  // namespace

layout_object::layout_object(layout_ref what, int64_t extent)
    : what_(std::move(what)), extent_(extent), packed_(one_block(what_->packed_size())) {}

exec::overlap layout_object::find_overlap() {
    const uint8_t known = overlap_.load(std::memory_order_relaxed);
    if (known != not_asked) {
        return static_cast<exec::overlap>(known);
    }
    const exec::overlap found = exec::find_overlap(*what_);
    overlap_.store(static_cast<uint8_t>(found), std::memory_order_relaxed);
    return found;
}

ucs_status_t check_target(const char *name, layout_object &what) {
    switch (what.find_overlap()) {
        case exec::overlap::none:
            return UCS_OK;
        case exec::overlap::some:
            return fail(UCS_ERR_INVALID_PARAM,
                        "%s: its layout covers a byte twice, and cannot be written to", name);
        default:
            return fail(UCS_ERR_INVALID_PARAM,
                        "%s: its layout has more than 2^24 blocks in no regular order, which may "
                        "cover a byte twice; write to parts of it",
                        name);
    }
}

cuda_nc_layout_t add_handle(object_ref object) {
    const uint32_t index = take_index();
    place &at = *place_at(index);
    std::lock_guard<std::mutex> guard(at.mutex);
    at.object = std::move(object);
    const uint64_t number = ++at.generation << index_bits | index;
    return reinterpret_cast<cuda_nc_layout_t>(static_cast<uintptr_t>(number));
}

object_ref find_object(cuda_nc_layout_t handle) noexcept {
    place *at = place_at(index_of(handle));
    if (at == nullptr) {
        return nullptr;
    }
    std::lock_guard<std::mutex> guard(at->mutex);
    return at->generation == number_of(handle) >> index_bits ? at->object : nullptr;
}

object_ref remove_handle(cuda_nc_layout_t handle) noexcept {
    const uint32_t index = index_of(handle);
    place *at = place_at(index);
    object_ref last;
    if (at != nullptr) {
        std::lock_guard<std::mutex> guard(at->mutex);
        if (at->generation == number_of(handle) >> index_bits) {
            last.swap(at->object);
        }
    }
    if (last != nullptr) {
        give_back(index);
    }
    return last;
}

}  // namespace cuda_nc::capi
