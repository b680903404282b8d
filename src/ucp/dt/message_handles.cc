#include "ucp/dt/message_handles.hpp"

#include <atomic>
#include <mutex>

#include "ucs/base/random_number.hpp"

namespace cuda_nc::dt {
namespace {

// Bits of a handle, from the lowest: marks, place, and how often the place was used, counted from a
// random number. No process lives through the 2^45 uses of one place after which handles repeat.
constexpr unsigned mark_bits = 3, place_bits = 16;
constexpr size_t num_places = size_t(1) << place_bits;

struct place {
    std::atomic<uintptr_t> handle{0};  // 0: free
    uintptr_t uses = 0;
    request_state *state = nullptr;
    uct::user_buffer *end = nullptr;
    uint32_t next_free = 0;
};

// Pages that are never touched take no memory.
place places[num_places];

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

uct::user_buffer *find_end(uint64_t word) noexcept {
    if ((word & ((uintptr_t(1) << mark_bits) - 1)) != message_handle_mark) {
        return nullptr;
    }
    place &where = places[place_of(word)];
    return where.handle.load(std::memory_order_acquire) == word ? where.end : nullptr;
}

}  // namespace

uintptr_t acquire_message_handle(request_state &state, uct::user_buffer &end) noexcept {
    uint32_t index;
    {
        std::lock_guard<std::mutex> guard(mutex);
        if (first_free != 0) {
            index = first_free;
            first_free = places[index].next_free;
        } else if (never_used < num_places) {
            index = never_used++;
            places[index].uses = first_use();
            uct::buffer_finder.store(find_end, std::memory_order_release);
        } else {
            return 0;
        }
    }
    place &where = places[index];
    where.state = &state;
    where.end = &end;
    uintptr_t handle = (++where.uses << (mark_bits + place_bits)) |
                       (uintptr_t(index) << mark_bits) | message_handle_mark;
    where.handle.store(handle, std::memory_order_release);
    return handle;
}

void release_message_handle(uintptr_t handle) noexcept {
    size_t index = place_of(handle);
    places[index].handle.store(0, std::memory_order_release);
    std::lock_guard<std::mutex> guard(mutex);
    places[index].next_free = first_free;
    first_free = static_cast<uint32_t>(index);
}

request_state *state_of_message_handle(uintptr_t handle) noexcept {
    return places[place_of(handle)].state;
}

}  // namespace cuda_nc::dt
