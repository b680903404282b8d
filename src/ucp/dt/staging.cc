#include "ucp/dt/staging.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "ucs/base/bits.hpp"
#include "ucs/base/compiler.hpp"
#include "ucs/base/given_up.hpp"
#include "ucs/base/log.hpp"
#include "ucs/base/settings.hpp"
#include "ucs/model/choices.hpp"

namespace cuda_nc::dt {
namespace {

constexpr int max_devices = 64;
constexpr size_t max_bounce = size_t(256) << 10;
constexpr size_t smallest_buffer = size_t(4) << 10;

std::atomic<device_staging *> devices[max_devices];
std::atomic<pid_t> owner{0};    // the process whose devices these are
std::atomic<size_t> held{0};    // bytes of staging in this process
std::atomic<size_t> in_use{0};  // of these, acquired by requests

// Bytes that the process may hold: at least one buffer, without which a message would take a copy
// for each of its blocks.
size_t staging_limit() noexcept {
    const size_t set = config().staging_size;
    if (CUDA_NC_UNLIKELY(set < smallest_buffer)) {
        nc_warn_once(
            "UCX_CUDA_NC_STAGING_SIZE=%zu is raised to %zu bytes, which one staging buffer needs",
            set, smallest_buffer);
    }
    return std::max(set, smallest_buffer);
}

// Counts `bytes` as held by the process. False: the limit is reached.
bool reserve(size_t bytes) noexcept {
    size_t limit = staging_limit();
    size_t now = held.load(std::memory_order_relaxed);
    while (bytes <= limit && now <= limit - bytes) {
        if (held.compare_exchange_weak(now, now + bytes, std::memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

void unreserve(size_t bytes) noexcept {
    held.fetch_sub(bytes, std::memory_order_relaxed);
}

}  // namespace

device_staging *device_staging::get(int ordinal) noexcept {
    if (ordinal < 0 || ordinal >= max_devices) {
        return nullptr;
    }
    // Asked each time: a forked child has no GPU, whatever its parent had.
    gpu::device *device = gpu::platform::instance().get_device(ordinal);
    if (device == nullptr) {
        return nullptr;
    }
    device_staging *known = devices[ordinal].load(std::memory_order_acquire);
    if (known != nullptr) {
        return known;
    }
    owner.store(getpid(), std::memory_order_relaxed);
    model::machine();  // before the first launch
    auto *made = new (std::nothrow) device_staging(device);
    if (made != nullptr &&
        !devices[ordinal].compare_exchange_strong(known, made, std::memory_order_acq_rel)) {
        delete made;
        made = known;
    }
    return made;
}

size_t device_staging::bytes_in_use() noexcept {
    return in_use.load(std::memory_order_relaxed);
}

size_t device_staging::bytes_held() noexcept {
    return held.load(std::memory_order_relaxed);
}

staging_buffer *device_staging::pop_idle(unsigned size_log2) noexcept {
    std::lock_guard<std::mutex> guard(mutex_);
    auto &list = idle_[size_log2];
    if (list.empty()) {
        return nullptr;
    }
    staging_buffer *buffer = list.back();
    list.pop_back();
    return buffer;
}

staging_buffer *device_staging::make(unsigned size_log2) noexcept {
    static_assert(smallest_buffer == size_t(1) << min_log2);
    size_t size = size_t(1) << size_log2;
    if (!reserve(size)) {
        return nullptr;
    }
    std::unique_ptr<staging_buffer> made(new (std::nothrow) staging_buffer);
    if (made != nullptr) {
        made->size_log2 = size_log2;
        if (device_->allocate_pinned(size + gpu::end_words::bytes, &made->pinned) == UCS_OK &&
            device_->create_event(&made->done) == UCS_OK) {
            made->ends.use(made->pinned->address() + size);
            return made.release();
        }
    }
    made.reset();
    unreserve(size);
    return nullptr;
}

void device_staging::destroy(staging_buffer *buffer) noexcept {
    size_t bytes = buffer->footprint();
    delete buffer;
    unreserve(bytes);
}

void device_staging::trim_idle() noexcept {
    for (auto &slot : devices) {
        device_staging *one = slot.load(std::memory_order_acquire);
        if (one == nullptr) {
            continue;
        }
        for (unsigned size_log2 = min_log2; size_log2 <= max_log2; ++size_log2) {
            while (staging_buffer *buffer = one->pop_idle(size_log2)) {
                destroy(buffer);
            }
        }
    }
}

staging_buffer *device_staging::acquire(size_t wanted, size_t least) noexcept {
    unsigned want = std::min(std::max(log2_ceil(wanted), unsigned(min_log2)), unsigned(max_log2));
    unsigned low = std::min(std::max(log2_ceil(least), unsigned(min_log2)), want);
    staging_buffer *buffer = pop_idle(want);
    if (buffer == nullptr) {
        buffer = make(want);
    }
    for (unsigned larger = want + 1; buffer == nullptr && larger <= max_log2; ++larger) {
        buffer = pop_idle(larger);
    }
    for (unsigned smaller = want; buffer == nullptr && smaller-- > low;) {
        buffer = pop_idle(smaller);
    }
    if (buffer == nullptr) {
        // Idle buffers of other sizes, or of other GPUs, are freed to make room.
        trim_idle();
        for (unsigned size_log2 = want + 1; buffer == nullptr && size_log2-- > low;) {
            buffer = make(size_log2);
        }
    }
    if (buffer != nullptr) {
        in_use.fetch_add(buffer->footprint(), std::memory_order_relaxed);
    }
    return buffer;
}

void device_staging::release(staging_buffer *buffer) noexcept {
    in_use.fetch_sub(buffer->footprint(), std::memory_order_relaxed);
    try {
        std::lock_guard<std::mutex> guard(mutex_);
        idle_[buffer->size_log2].push_back(buffer);
    } catch (const std::bad_alloc &) {
        destroy(buffer);
    }
}

void device_staging::abandon(staging_buffer *buffer) noexcept {
    nc_debug("%zu bytes of staging are never used again: work on %s may still run", buffer->size(),
             device_->properties().name.c_str());
    give_up_for_ever(buffer);
}

bool device_staging::ensure_device_part(staging_buffer &buffer) noexcept {
    if (buffer.device != nullptr) {
        return true;
    }
    if (!reserve(buffer.size())) {
        return false;
    }
    if (device_->allocate_private(buffer.size(), &buffer.device) != UCS_OK) {
        unreserve(buffer.size());
        return false;
    }
    in_use.fetch_add(buffer.size(), std::memory_order_relaxed);
    return true;
}

shared_stream *device_staging::find_ready(streams &all, unsigned turn) noexcept {
    for (unsigned i = 0; i < streams_per_direction; ++i) {
        shared_stream &one = all[(turn + i) % streams_per_direction];
        std::lock_guard<std::mutex> guard(one.mutex);
        if (one.ready(*device_) != nullptr) {
            return &one;
        }
    }
    return nullptr;
}

shared_stream &device_staging::pick_of(streams &all) noexcept {
    unsigned turn = next_stream_.fetch_add(1, std::memory_order_relaxed);
    if (shared_stream *one = find_ready(all, turn)) {
        return *one;
    }
    for (streams &others : streams_) {
        shared_stream *one = &others != &all ? find_ready(others, turn) : nullptr;
        if (one != nullptr) {
            return *one;
        }
    }
    return all[turn % streams_per_direction];
}

std::unique_ptr<gpu::completion> device_staging::acquire_completion() noexcept {
    {
        std::lock_guard<std::mutex> guard(mutex_);
        if (!completions_.empty()) {
            std::unique_ptr<gpu::completion> one = std::move(completions_.back());
            completions_.pop_back();
            return one;
        }
    }
    return gpu::completion::make(*device_);
}

void device_staging::release_completion(std::unique_ptr<gpu::completion> one) noexcept {
    try {
        std::lock_guard<std::mutex> guard(mutex_);
        completions_.push_back(std::move(one));
    } catch (const std::bad_alloc &) {
        // `one` is destroyed
    }
}

bool device_staging::ready_bounce() noexcept {
    if (bounce_.buffer == nullptr) {
        size_t wanted = std::min(max_bounce, staging_limit() / 8);
        bounce_.buffer = acquire(wanted, 0);
    }
    return bounce_.buffer != nullptr;
}

void device_staging::release_all_unused() noexcept {
    if (owner.load(std::memory_order_relaxed) != getpid()) {
        return;
    }
    for (auto &slot : devices) {
        device_staging *one = slot.load(std::memory_order_acquire);
        if (one == nullptr) {
            continue;
        }
        {
            std::lock_guard<std::mutex> guard(one->bounce_.mutex);
            if (one->bounce_.buffer != nullptr) {
                one->release(one->bounce_.buffer);
                one->bounce_.buffer = nullptr;
                one->bounce_.owner = 0;
                one->bounce_reserved_.store(false, std::memory_order_release);
            }
        }
        for (auto &direction : one->streams_) {
            for (shared_stream &stream : direction) {
                std::lock_guard<std::mutex> guard(stream.mutex);
                stream.stream.reset();
            }
        }
        std::lock_guard<std::mutex> guard(one->mutex_);
        one->completions_.clear();
    }
    trim_idle();
}

}  // namespace cuda_nc::dt
