#include "ucp/dt/message_handles.hpp"

#include <array>
#include <atomic>
#include <mutex>
#include <new>

#include "ucs/base/log.hpp"
#include "ucs/base/random_number.hpp"

namespace cuda_nc::dt {
namespace {

// Bits of a handle, from the lowest: marks, place, and how often the place was used, counted from a
// random number. A place whose count has gone round is not used again, so that no handle repeats.
constexpr unsigned mark_bits = 3, place_bits = 24, use_bits = 64 - mark_bits - place_bits;
constexpr uintptr_t most_uses = (uintptr_t(1) << use_bits) - 1;
constexpr size_t num_places = size_t(1) << place_bits;

struct place {
    std::atomic<uintptr_t> handle{0};  // 0: free
    uintptr_t uses = 0;
    request_state *state = nullptr;
    uct::user_buffer *end = nullptr;
    uint32_t next_free = 0;
};

// Places are made in segments, which stay where they are: a look-up takes no lock.
constexpr unsigned segment_bits = 12;
constexpr size_t segment_places = size_t(1) << segment_bits;
using segment = std::array<place, segment_places>;
std::array<std::atomic<segment *>, num_places / segment_places> segments;

std::mutex mutex;
uint32_t first_free = 0;  // 0: none; place 0 is not used
uint32_t never_used = 1;

uintptr_t first_use() noexcept {
    static const uintptr_t random = random_number();
    return random;
}

size_t place_of(uintptr_t handle) noexcept {
    return (handle >> mark_bits) & (num_places - 1);
}

// The segment of the place must be there.
place &place_at(size_t index) noexcept {
    return (*segments[index >> segment_bits].load(
        std::memory_order_acquire))[index & (segment_places - 1)];
}

uct::user_buffer *find_end(uint64_t word) noexcept {
    if ((word & ((uintptr_t(1) << mark_bits) - 1)) != message_handle_mark) {
        return nullptr;
    }
    const size_t index = place_of(word);
    segment *of = segments[index >> segment_bits].load(std::memory_order_acquire);
    if (of == nullptr) {
        return nullptr;
    }
    place &where = (*of)[index & (segment_places - 1)];
    return where.handle.load(std::memory_order_acquire) == word ? where.end : nullptr;
}

// A place that was never used; 0: there is none, or no memory. With the lock.
uint32_t add_place() noexcept {
    if (never_used == num_places) {
        return 0;
    }
    auto &of = segments[never_used >> segment_bits];
    if (of.load(std::memory_order_relaxed) == nullptr) {
        auto *made = new (std::nothrow) segment;
        if (made == nullptr) {
            return 0;
        }
        of.store(made, std::memory_order_release);
        uct::buffer_finder.store(find_end, std::memory_order_release);
    }
    place_at(never_used).uses = first_use();
    return never_used++;
}

// 0: none.
uint32_t acquire_place() noexcept {
    std::lock_guard<std::mutex> guard(mutex);
    const uint32_t index = first_free;
    if (index == 0) {
        return add_place();
    }
    first_free = place_at(index).next_free;
    return index;
}

}  // namespace

uintptr_t acquire_message_handle(request_state &state, uct::user_buffer &end) noexcept {
    const uint32_t index = acquire_place();
    if (index == 0) {
        nc_warn_once(
            "messages of derived datatypes in GPU memory go through host memory for now: too many "
            "are outstanding, or memory is short; complete some before you start more");
        return 0;
    }
    place &where = place_at(index);
    where.state = &state;
    where.end = &end;
    uintptr_t handle = (++where.uses << (mark_bits + place_bits)) |
                       (uintptr_t(index) << mark_bits) | message_handle_mark;
    where.handle.store(handle, std::memory_order_release);
    return handle;
}

void release_message_handle(uintptr_t handle) noexcept {
    const size_t index = place_of(handle);
    place &where = place_at(index);
    where.handle.store(0, std::memory_order_release);
    std::lock_guard<std::mutex> guard(mutex);
    if (where.uses - first_use() < most_uses) {
        where.next_free = first_free;
        first_free = static_cast<uint32_t>(index);
    }
}

request_state *state_of_message_handle(uintptr_t handle) noexcept {
    return place_at(place_of(handle)).state;
}

}  // namespace cuda_nc::dt
