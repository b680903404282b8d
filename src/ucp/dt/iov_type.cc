#include "ucp/dt/iov_type.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

#include "ucp/dt/datatype.hpp"
#include "ucs/gpu/device.hpp"
#include "ucs/layout/layout.hpp"

namespace cuda_nc::dt {
namespace {

using type_ref = std::shared_ptr<const iov_type>;

bool same_list(const iov_type &type, const ucp_dt_iov_t *list, size_t number) noexcept {
    return type.list.size() == number &&
           std::memcmp(type.list.data(), list, number * sizeof(*list)) == 0;
}

// The types that were used last.
class kept_types {
  public:
    type_ref find(uint64_t hash, const ucx_instance &ucx) noexcept {
        std::lock_guard<std::mutex> guard(mutex_);
        const size_t place = find_place(hash, ucx);
        if (place == most) {
            return nullptr;
        }
        last_uses_[place] = ++uses_;
        return types_[place];
    }

    void keep(uint64_t hash, type_ref type) noexcept {
        const size_t added = bytes_of(*type);
        if (added > most_bytes / 4) {
            return;
        }
        std::array<type_ref, most> leaving;  // destroyed without the lock
        size_t num_leaving = 0;
        std::lock_guard<std::mutex> guard(mutex_);
        size_t place = find_place(hash, *type->ucx);
        if (place == most) {
            place = find_oldest(true);
        }
        leaving[num_leaving++] = remove(place);
        while (bytes_ + added > most_bytes) {
            leaving[num_leaving++] = remove(find_oldest(false));
        }
        bytes_ += added;
        hashes_[place] = hash;
        last_uses_[place] = ++uses_;
        types_[place] = std::move(type);
    }

  private:
    static constexpr size_t most = 256, most_bytes = size_t(64) << 20;

    // The list, and about as much for its layout.
    static size_t bytes_of(const iov_type &type) noexcept {
        return 1024 + 2 * type.list.size() * sizeof(ucp_dt_iov_t);
    }

    size_t find_place(uint64_t hash, const ucx_instance &ucx) const noexcept {
        for (size_t i = 0; i < most; ++i) {
            if (hashes_[i] == hash && types_[i] != nullptr && types_[i]->ucx == &ucx) {
                return i;
            }
        }
        return most;
    }

    // Of the places in use; `or_free`: one that is not, where there is one.
    size_t find_oldest(bool or_free) const noexcept {
        size_t oldest = most;
        for (size_t i = 0; i < most; ++i) {
            if (types_[i] == nullptr) {
                if (or_free) {
                    return i;
                }
            } else if (oldest == most || last_uses_[i] < last_uses_[oldest]) {
                oldest = i;
            }
        }
        return oldest;
    }

    type_ref remove(size_t place) noexcept {
        if (types_[place] != nullptr) {
            bytes_ -= bytes_of(*types_[place]);
        }
        return std::exchange(types_[place], nullptr);
    }

    std::mutex mutex_;
    std::array<uint64_t, most> hashes_{}, last_uses_{};
    std::array<type_ref, most> types_;
    uint64_t uses_ = 0;
    size_t bytes_ = 0;
};

kept_types &kept() {
    static auto *only = new kept_types;
    return *only;
}

// False: an address or a sum is beyond what there is.
bool measure(iov_type &type) noexcept {
    uintptr_t lowest = UINTPTR_MAX, highest = 0, last_end = 0;
    bool ascending = true;
    for (const ucp_dt_iov_t &one : type.list) {
        if (one.length == 0) {
            continue;
        }
        const auto start = reinterpret_cast<uintptr_t>(one.buffer);
        uintptr_t end;
        if (__builtin_add_overflow(start, one.length, &end)) {
            return false;
        }
        ascending = ascending && start >= last_end;
        last_end = end;
        lowest = std::min(lowest, start);
        highest = std::max(highest, end);
    }
    if (highest == 0) {
        return false;
    }
    type.lowest = reinterpret_cast<char *>(lowest);
    type.span = highest - lowest;
    if (ascending) {
        type.known_order = iov_type::order::apart;
    }
    return true;
}

bool some_overlap(std::vector<ucp_dt_iov_t> list) {
    std::sort(list.begin(), list.end(),
              [](const auto &a, const auto &b) { return a.buffer < b.buffer; });
    uintptr_t last_end = 0;
    for (const ucp_dt_iov_t &one : list) {
        const auto start = reinterpret_cast<uintptr_t>(one.buffer);
        if (one.length != 0) {
            if (start < last_end) {
                return true;
            }
            last_end = start + one.length;
        }
    }
    return false;
}

type_ref make_type(const ucx_instance &ucx, const ucp_dt_iov_t *list, size_t number) {
    auto made = std::make_shared<iov_type>();
    made->ucx = &ucx;
    made->list.assign(list, list + number);
    if (!measure(*made)) {
        return nullptr;
    }
    layout_builder builder;
    for (const ucp_dt_iov_t &one : made->list) {
        if (one.length != 0) {
            builder.append(static_cast<int64_t>(reinterpret_cast<uintptr_t>(one.buffer) -
                                                reinterpret_cast<uintptr_t>(made->lowest)),
                           one.length);
        }
    }
    layout_ref element = builder.finish();
    if (element == nullptr) {
        return nullptr;
    }
    made->packed = element->packed_size();
    return create_in(ucx, std::move(element), 0, &made->datatype) == UCS_OK ? made : nullptr;
}

// Allocations in memory of one GPU and kind.
class met_allocations {
  public:
    met_allocations(gpu::platform &gpus, const gpu::memory_info &first) noexcept
        : gpus_(gpus), first_(first) {
        add(first.allocation);
    }

    // Whether `address` is in such memory.
    bool hold(const char *address) noexcept {
        for (size_t i = 0; i < number_; ++i) {
            if (met_[i].holds(reinterpret_cast<uintptr_t>(address), 1)) {
                std::swap(met_[i], met_[0]);  // the next one is probably there too
                return true;
            }
        }
        const gpu::memory_info info = gpus_.query(address);
        if (!gpu::are_alike(info, first_)) {
            return false;
        }
        add(info.allocation);
        return true;
    }

  private:
    void add(const gpu::allocation_info &found) noexcept {
        if (found.id != 0) {
            number_ = std::min(number_ + 1, met_.size());
            met_[number_ - 1] = found;
            std::swap(met_[number_ - 1], met_[0]);
        }
    }

    gpu::platform &gpus_;
    const gpu::memory_info first_;
    std::array<gpu::allocation_info, 64> met_;
    size_t number_ = 0;
};

}  // namespace

iov_type::~iov_type() {
    if (datatype != 0) {
        destroy(datatype);
    }
}

bool iov_type::overlaps() const {
    if (known_order.load(std::memory_order_relaxed) == order::unknown) {
        known_order.store(some_overlap(list) ? order::overlapping : order::apart,
                          std::memory_order_relaxed);
    }
    return known_order.load(std::memory_order_relaxed) == order::overlapping;
}

std::shared_ptr<const iov_type> find_iov_type(const ucx_instance &ucx, const ucp_dt_iov_t *list,
                                              size_t number) noexcept try {
    const uint64_t hash = XXH3_64bits(list, number * sizeof(*list));
    type_ref found = kept().find(hash, ucx);
    if (found != nullptr && same_list(*found, list, number)) {
        return found;
    }
    found = make_type(ucx, list, number);
    if (found != nullptr) {
        kept().keep(hash, found);
    }
    return found;
} catch (const std::bad_alloc &) {
    return nullptr;
} catch (...) {
    return nullptr;  // a list longer than there is memory
}

bool is_on_one_gpu(const iov_type &type) noexcept {
    gpu::platform &gpus = gpu::platform::instance();
    const gpu::memory_info info = gpus.query(type.lowest);
    if (!gpu::is_on_gpu(info.kind) || gpus.get_device(info.device) == nullptr) {
        return false;
    }
    met_allocations met(gpus, info);
    if (info.allocation.holds(reinterpret_cast<uintptr_t>(type.lowest), type.span)) {
        return true;  // and all between
    }
    for (const ucp_dt_iov_t &one : type.list) {
        const auto *start = static_cast<const char *>(one.buffer);
        if (one.length != 0 && (!met.hold(start) || !met.hold(start + one.length - 1))) {
            return false;
        }
    }
    return true;
}

}  // namespace cuda_nc::dt
