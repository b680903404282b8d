#include "ucp/dt/message_handles.hpp"

#include <array>
#include <atomic>
#include <mutex>
#include <new>

#include "ucs/base/compiler.hpp"
#include "ucs/base/log.hpp"
#include "ucs/base/random_number.hpp"

namespace cuda_nc::dt {

struct handle_place {
    std::atomic<uintptr_t> handle{0};  // 0: not in use
    uintptr_t uses = 0;
    request_state *state = nullptr;
    uct::user_buffer *end = nullptr;
    uint32_t index = 0;
    uint32_t next_free = 0;
};

namespace {

// Bits of a handle, from the lowest: marks, place, and how often the place was used, counted from a
// random number. A place whose count has gone round is not used again, so that no handle repeats.
constexpr unsigned mark_bits = 3, place_bits = 24, use_bits = 64 - mark_bits - place_bits;
constexpr uintptr_t most_uses = (uintptr_t(1) << use_bits) - 1;
constexpr size_t num_places = size_t(1) << place_bits;

// Places are made in segments, which stay where they are: a look-up takes no lock.
constexpr unsigned segment_bits = 12;
constexpr size_t segment_places = size_t(1) << segment_bits;
using segment = std::array<handle_place, segment_places>;
std::array<std::atomic<segment *>, num_places / segment_places> segments;

std::mutex mutex;
uint32_t first_free = 0;  // 0: none; place 0 is not used
uint32_t never_used = 1;
std::atomic<uint32_t> given_back{0};  // the first of those since first_free became 0; 0: none

uintptr_t first_use() noexcept {
    static const uintptr_t random = random_number();
    return random;
}

size_t place_of(uintptr_t handle) noexcept {
    return (handle >> mark_bits) & (num_places - 1);
}

// The segment of the place must be there.
handle_place &place_at(size_t index) noexcept {
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
    handle_place &where = (*of)[index & (segment_places - 1)];
    return where.handle.load(std::memory_order_acquire) == word ? where.end : nullptr;
}

bool is_used_up(const handle_place &where) noexcept {
    return where.uses - first_use() >= most_uses;
}

// A place that was never used; null: there is none, or no memory. With the lock.
handle_place *add_place() noexcept {
    if (never_used == num_places) {
        return nullptr;
    }
    auto &of = segments[never_used >> segment_bits];
    if (of.load(std::memory_order_relaxed) == nullptr) {
        auto *made = new (std::nothrow) segment;
        if (made == nullptr) {
            return nullptr;
        }
        of.store(made, std::memory_order_release);
        uct::buffer_finder.store(find_end, std::memory_order_release);
    }
    handle_place &made = place_at(never_used);
    made.uses = first_use();
    made.index = never_used++;
    return &made;
}

// Null: none.
handle_place *acquire_place() noexcept {
    std::lock_guard<std::mutex> guard(mutex);
    if (first_free == 0) {
        first_free = given_back.exchange(0, std::memory_order_acquire);
    }
    if (first_free == 0) {
        return add_place();
    }
    handle_place &found = place_at(first_free);
    first_free = found.next_free;
    return &found;
}

// Without the lock: in a child that was forked meanwhile it may be taken for ever. The list is
// taken as a whole alone.
void release_place(handle_place &where) noexcept {
    uint32_t first = given_back.load(std::memory_order_relaxed);
    do {
        where.next_free = first;
    } while (!given_back.compare_exchange_weak(first, where.index, std::memory_order_release,
                                               std::memory_order_relaxed));
}

}  // namespace

message_handle::~message_handle() {
    release();
    if (place_ != nullptr && !is_used_up(*place_)) {
        release_place(*place_);
    }
}

uintptr_t message_handle::acquire(request_state &state, uct::user_buffer &end) noexcept {
    if (CUDA_NC_UNLIKELY(place_ == nullptr || is_used_up(*place_))) {
        place_ = acquire_place();
    }
    if (CUDA_NC_UNLIKELY(place_ == nullptr)) {
        nc_warn_once(
            "messages of derived datatypes in GPU memory go through host memory for now: too many "
            "are outstanding, or memory is short; complete some before you start more");
        return 0;
    }
    handle_place &where = *place_;
    where.state = &state;
    where.end = &end;
    value_ = (++where.uses << (mark_bits + place_bits)) | (uintptr_t(where.index) << mark_bits) |
             message_handle_mark;
    where.handle.store(value_, std::memory_order_release);
    return value_;
}

void message_handle::release() noexcept {
    if (value_ != 0) {
        place_->handle.store(0, std::memory_order_release);
        value_ = 0;
    }
}

request_state *state_of_message_handle(uintptr_t handle) noexcept {
    return place_at(place_of(handle)).state;
}

request_state *find_state_of_message_handle(uintptr_t handle) noexcept {
    const handle_place &where = place_at(place_of(handle));
    return where.handle.load(std::memory_order_acquire) == handle ? where.state : nullptr;
}

}  // namespace cuda_nc::dt
