#include "ucp/dt/packed_memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "ucs/base/bits.hpp"
#include "ucs/base/settings.hpp"

namespace cuda_nc::dt {
namespace {

using gpu::memory_kind;

constexpr uint64_t most_unpinned = 64 << 10;

// What calls have given back, and how much the process has. Pinned memory is all GPUs'.
class kept_memory {
  public:
    explicit kept_memory(memory_kind kind) noexcept : kind_(kind) {}

    std::unique_ptr<gpu::memory> acquire(gpu::device &device, uint64_t wanted) noexcept {
        constexpr uint64_t granularity = 256 << 10;
        if (wanted > config().staging_size) {
            return nullptr;
        }
        const uint64_t size = round_up(wanted, granularity);
        const int ordinal = device.properties().ordinal;
        std::vector<std::unique_ptr<gpu::memory>> freed;  // outside the lock
        {
            std::lock_guard<std::mutex> guard(mutex_);
            if (std::unique_ptr<gpu::memory> found = find(ordinal, size)) {
                return found;
            }
            if (!reserve(size, &freed)) {
                return nullptr;
            }
        }
        freed.clear();
        std::unique_ptr<gpu::memory> made;
        const ucs_status_t status = kind_ == memory_kind::pinned
                                        ? device.allocate_pinned(size, &made)
                                        : device.allocate(size, &made);
        if (status != UCS_OK) {
            std::lock_guard<std::mutex> guard(mutex_);
            held_ -= size;
            return nullptr;
        }
        return made;
    }

    void release(std::unique_ptr<gpu::memory> one, int ordinal) noexcept try {
        std::lock_guard<std::mutex> guard(mutex_);
        idle_.reserve(idle_.size() + 1);
        idle_.push_back({std::move(one), ordinal});
    } catch (const std::bad_alloc &) {
        std::lock_guard<std::mutex> guard(mutex_);
        held_ -= one->size();  // it is destroyed
    }

    void release_unused() noexcept {
        std::vector<kept> freed;
        std::lock_guard<std::mutex> guard(mutex_);
        for (const kept &one : idle_) {
            held_ -= one.memory->size();
        }
        freed.swap(idle_);
    }

  private:
    struct kept {
        std::unique_ptr<gpu::memory> memory;
        int ordinal;
    };

    // The smallest that is large enough, and not much too large.
    std::unique_ptr<gpu::memory> find(int ordinal, uint64_t size) noexcept {
        auto best = idle_.end();
        for (auto one = idle_.begin(); one != idle_.end(); ++one) {
            const uint64_t its = one->memory->size();
            if ((kind_ == memory_kind::pinned || one->ordinal == ordinal) && its >= size &&
                its / 2 <= size && (best == idle_.end() || its < best->memory->size())) {
                best = one;
            }
        }
        if (best == idle_.end()) {
            return nullptr;
        }
        std::unique_ptr<gpu::memory> found = std::move(best->memory);
        idle_.erase(best);
        return found;
    }

    // Counts `size` bytes as held, in the place of idle memory where there is no room beside it.
    bool reserve(uint64_t size, std::vector<std::unique_ptr<gpu::memory>> *freed) noexcept try {
        const uint64_t limit = std::max<uint64_t>(config().staging_size, size);
        freed->reserve(idle_.size());
        while (held_ > limit - size && !idle_.empty()) {
            held_ -= idle_.front().memory->size();
            freed->push_back(std::move(idle_.front().memory));
            idle_.erase(idle_.begin());  // the one that has been here longest
        }
        const bool has_room = held_ <= limit - size;
        held_ += has_room ? size : 0;
        return has_room;
    } catch (const std::bad_alloc &) {
        return false;
    }

    const memory_kind kind_;
    std::mutex mutex_;
    std::vector<kept> idle_;
    uint64_t held_ = 0;  // bytes, idle ones included
};

// Never destroyed: calls may end after main().
kept_memory &pinned_memory() noexcept {
    static auto *only = new kept_memory(memory_kind::pinned);
    return *only;
}

kept_memory &gpu_memory() noexcept {
    static auto *only = new kept_memory(memory_kind::device);
    return *only;
}

}  // namespace

packed_memory::packed_memory(packed_memory &&other) noexcept
    : place_(std::exchange(other.place_, {})), owner_(std::exchange(other.owner_, nullptr)) {}

packed_memory &packed_memory::operator=(packed_memory &&other) noexcept {
    if (this != &other) {
        give_back();
        place_ = std::exchange(other.place_, {});
        owner_ = std::exchange(other.owner_, nullptr);
    }
    return *this;
}

void packed_memory::give_back() noexcept {
    if (owner_ == nullptr) {
        std::free(place_.start);
        return;
    }
    kept_memory &its = place_.lies.kind == memory_kind::pinned ? pinned_memory() : gpu_memory();
    its.release(std::unique_ptr<gpu::memory>(owner_), place_.lies.device);
}

packed_memory packed_memory::of_gpu(int ordinal, uint64_t size) noexcept {
    packed_memory made;
    gpu::device *device = gpu::platform::instance().get_device(ordinal);
    if (device != nullptr) {
        made.owner_ = gpu_memory().acquire(*device, size).release();
    }
    if (made.owner_ != nullptr) {
        made.place_.start = made.owner_->address();
        made.place_.lies = gpu::platform::instance().query(made.place_.start);
    }
    return made;
}

packed_memory packed_memory::of_host(int ordinal, uint64_t size) noexcept {
    packed_memory made;
    gpu::device *device = ordinal >= 0 && size > most_unpinned
                              ? gpu::platform::instance().get_device(ordinal)
                              : nullptr;
    if (device != nullptr) {
        made.owner_ = pinned_memory().acquire(*device, size).release();
    }
    if (made.owner_ != nullptr) {
        made.place_.start = made.owner_->address();
        made.place_.lies.kind = memory_kind::pinned;
    } else {
        made.place_.start = static_cast<char *>(std::malloc(std::max<uint64_t>(size, 1)));
    }
    return made;
}

void packed_memory::release_unused() noexcept {
    pinned_memory().release_unused();
    gpu_memory().release_unused();
}

}  // namespace cuda_nc::dt
