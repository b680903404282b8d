#include "ucs/exec/host/split.hpp"

#include <sched.h>

#include <algorithm>

#include "ucs/base/bits.hpp"
#include "ucs/base/settings.hpp"
#include "ucs/exec/host/disjoint.hpp"
#include "ucs/exec/host/thread_pool.hpp"
#include "ucs/exec/host/walk.hpp"
#include "ucs/exec/host/walk_order.hpp"

namespace cuda_nc::exec {

std::atomic<uint64_t> split_from{0};

namespace {

// Least bytes for each thread. Measured with two processors: a thread helps 12 to 27 us after it is
// woken. Calls of 4 MiB took 0.7 of one thread's time in blocks of 8 bytes and 4 KiB and 1.1 in
// blocks of 64 bytes, calls of 2 MiB 0.9 to 1.3, calls of 512 KiB 1.6 to 2.
constexpr uint64_t usual_least_bytes = 2 << 20;

// Several parts for each thread: the others take those of a thread that comes late or loses its
// processor.
constexpr uint64_t parts_per_thread = 4;
constexpr uint64_t most_part_bytes = 4 << 20;

std::atomic<uint64_t> least_bytes{usual_least_bytes};
std::atomic<bool> forced{false};  // by a test

unsigned count_processors() noexcept {
    cpu_set_t allowed[16];  // 16384 of them
    CPU_ZERO_S(sizeof(allowed), allowed);
    if (sched_getaffinity(0, sizeof(allowed), allowed) != 0) {
        return 1;
    }
    return static_cast<unsigned>(CPU_COUNT_S(sizeof(allowed), allowed));
}

struct shared_call {
    const layout_view &view;
    address laid, laid_target, packed;
    uint64_t offset, length;  // of all parts
    uint64_t unit, step;      // a part is about `step` bytes and ends at a multiple of `unit`

    uint64_t num_parts() const noexcept { return divide_up(length, step); }

    // Packed offset at which a part begins; for num_parts(), where the last one ends.
    uint64_t cut(uint64_t part) const noexcept {
        if (part == 0) {
            return offset;
        }
        return part == num_parts() ? offset + length : (offset + part * step) / unit * unit;
    }
};

template <direction Dir>
void move_part(const void *what, uint64_t part) noexcept {
    const shared_call &call = *static_cast<const shared_call *>(what);
    const uint64_t begin = call.cut(part), end = call.cut(part + 1);
    if (begin != end) {
        walk<Dir>(call.view, call.laid, call.laid_target, begin)
            .move(call.packed + (begin - call.offset), end - begin);
    }
}

void choose_parts(unsigned num_threads, shared_call *call) noexcept {
    const uint64_t parts = std::max(num_threads * parts_per_thread, call->length / most_part_bytes);
    const uint64_t share = divide_up(call->length, parts);
    call->unit = find_unit(call->view, std::max<uint64_t>(share / 4, 1));
    call->step = round_up(share, call->unit);
}

}  // namespace

unsigned max_host_threads() noexcept {
    const unsigned asked = config().host_threads;
    if (asked < 2 || forced.load(std::memory_order_relaxed)) {
        return std::max(asked, 1u);
    }
    return std::min(asked, count_processors());
}

template <direction Dir>
bool move_split(const layout_view &view, address laid, address laid_target, uint64_t packed_offset,
                address packed, uint64_t length) noexcept {
    const uint64_t least = least_bytes.load(std::memory_order_relaxed);
    if (split_from.load(std::memory_order_relaxed) == 0) {
        split_from.store(config().host_threads < 2 ? UINT64_MAX : 2 * least,
                         std::memory_order_relaxed);
    }
    if (length < 2 * least) {
        return false;
    }
    const unsigned threads =
        static_cast<unsigned>(std::min<uint64_t>(max_host_threads(), length / least));
    if (threads < 2) {
        return false;
    }
    shared_call call{view, laid, laid_target, packed, packed_offset, length, 1, 1};
    choose_parts(threads, &call);
    if (call.num_parts() < 2 ||
        (Dir != direction::pack && !blocks_are_disjoint(view, view.num_dims))) {
        return false;
    }
    thread_pool *pool = thread_pool::instance();
    return pool != nullptr && pool->run(threads - 1, call.num_parts(), move_part<Dir>, &call);
}

void reload_split_for_test(uint64_t least) noexcept {
    forced.store(least != 0, std::memory_order_relaxed);
    least_bytes.store(least != 0 ? least : usual_least_bytes, std::memory_order_relaxed);
    split_from.store(0, std::memory_order_relaxed);
}

template bool move_split<direction::pack>(const layout_view &, address, address, uint64_t, address,
                                          uint64_t) noexcept;
template bool move_split<direction::unpack>(const layout_view &, address, address, uint64_t,
                                            address, uint64_t) noexcept;
template bool move_split<direction::copy>(const layout_view &, address, address, uint64_t, address,
                                          uint64_t) noexcept;

}  // namespace cuda_nc::exec
