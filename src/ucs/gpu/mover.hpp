// The mover of a GPU: a kernel that stays there while orders keep coming, and carries them out. An
// order costs the CPU some stores and a fence where a launch costs microseconds, and begins sooner.
//
// An order moves bytes from one layout to another, as a pull does (pipe.hpp). Orders run side by
// side and in any order; none is ordered with any stream. What an order reads must be there when it
// is given, and what it writes is there when it has ended: then the CPU, and whoever it tells, see
// the bytes.
//
// Memory: the layouts are read during give() alone; their tables, and the bytes on both sides, must
// stay until the order has ended. Ring and end words are the mover's. Each order holds a place of
// the ring until release(): whoever was given a ticket asks for its end, and gives it back.
//
// The kernel is a guest. It leaves when no order has come for the idle time (UCX_CUDA_NC_MOVER_IDLE
// at most, and less where orders usually come sooner after each other), soon after the last order
// when the process is in UCX no longer (mover_stay.hpp), when it has been there for longest_stay
// although orders keep coming, and at once when it is asked to. Before it goes it ends
// the orders that it has taken, at most a ring of longest_order bytes each. So whoever waits for
// the device - cudaDeviceSynchronize, cudaFree, a reset, the process's end - waits that long at
// most; twice that where another launch is queued behind it. A child process has no mover: fork()
// waits for nothing.
//
// Where the kernel is not there orders that come in bursts launch it, and the first of a burst
// waits until it begins. Others are launched as they are, or as a set: several orders by one
// launch, which waits for nothing and leaves. The kernel comes behind them, by expect(), where it
// will be of use soon.
//
// Errors: where the kernel fails, every order that has not ended gets state UCS_ERR_IO_ERROR, and
// the mover takes no more. An order that no kernel has taken, because none could be launched, gets
// UCS_ERR_CANCELED: its bytes have not been touched. In both cases the giver takes its slower path.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ucs/base/status.hpp"
#include "ucs/layout/layout_view.hpp"

namespace cuda_nc::gpu {

// Longer moves gain little by an order, and would hold up short ones.
constexpr uint64_t longest_order = uint64_t{1} << 20;  // bytes
// Of orders that are under way together, those above `longest_of_many` count up to `most_together`:
// a mover has fewer thread blocks than launches have, and many long moves gain more by those.
constexpr uint64_t longest_of_many = uint64_t{256} << 10, most_together = uint64_t{1} << 20;
// The same of lists with tables, whose words take longer to find.
constexpr uint64_t longest_listed_of_many = uint64_t{64} << 10;
constexpr uint64_t longest_stay_us = 1000;  // microseconds, of one launch
constexpr size_t most_of_set = 16;          // orders of one launch, of up to longest_of_many each

struct move_order {
    const layout_view *source = nullptr;  // null: laid out as the target is
    const char *source_base = nullptr;    // displacement 0
    const layout_view *target = nullptr;
    char *target_base = nullptr;
    uint64_t packed_offset = 0;
    uint64_t length = 0;           // bytes, 1 to longest_order
    bool into_own_memory = false;  // as of a transfer
};

// Whether all numbers are in range; addresses are not checked.
inline bool valid(const move_order &one) noexcept {
    auto holds = [&one](const layout_view &what) {
        return one.packed_offset <= what.packed_size &&
               one.length <= what.packed_size - one.packed_offset;
    };
    return one.target != nullptr && one.length >= 1 && one.length <= longest_order &&
           holds(*one.target) && (one.source == nullptr || holds(*one.source));
}

// The word of an order in which its end shows first.
struct order_end_mark {
    const uint32_t *word = nullptr;  // null: there is none, and its mover is to be asked
    uint32_t tag = 0;                // the word's bits from `low_bits` on, then
    uint32_t low_bits = 0;

    // False: the order has not ended. (The word may be a later order's by now.)
    bool may_show() const noexcept {
        if (word == nullptr) {
            return true;
        }
        const uint32_t seen = __atomic_load_n(word, __ATOMIC_RELAXED) >> low_bits;
        return static_cast<int32_t>((seen - tag) << low_bits) >= 0;
    }
};

// How orders are given.
struct giving {
    // As part of the trials that find out whether the program goes on sooner without a kernel that
    // stays.
    bool counts_in_trials = true;
    // Only where the kernel is on the GPU. For bytes that copy engines move as well: those need no
    // multiprocessor, which an application's kernel may keep until the bytes have come. Where the
    // kernel leaves at that very moment the order is not taken, and no kernel is launched for it.
    bool to_present_kernel = false;
    // Two or more that find no kernel may have a launch of their own, which leaves when it has
    // moved them: sooner than a launch for each, or a kernel that first begins to wait for orders.
    bool may_launch_set = false;
};

// What became of orders.
struct given {
    size_t number = 0;          // of those that were taken
    bool launched_set = false;  // they have a launch of their own
};

// Thread safe.
class mover {
  public:
    using ticket = uint64_t;  // the order's number; 0: none

    virtual ~mover() = default;

    // Gives those of `number` orders that the kernel serves and that there is room for (of long
    // ones up to most_together bytes at a time, else none). tickets[i] is the ticket of orders[i];
    // 0: it was not taken and is to be launched. Work is to be given once, when it can begin: by
    // that it is known how often work comes. Waits for no order; where a kernel leaves at that very
    // moment it waits until that has said which orders it took.
    virtual given give(const move_order *orders, size_t number, ticket *tickets,
                       giving how = {}) noexcept = 0;
    // Whether orders are taken at once: the kernel is on the GPU, or is launched for the first of
    // several. False: others may come meanwhile, and form a set. Reads two words.
    virtual bool takes_at_once() const noexcept = 0;
    // To be called when work that was not taken has been launched: launches the kernel where more
    // orders are expected soon.
    virtual void expect() noexcept = 0;

    // Whether order `which` has ended: UCS_OK, UCS_INPROGRESS, UCS_ERR_CANCELED or
    // UCS_ERR_IO_ERROR. Reads a word.
    virtual ucs_status_t state(ticket which) const noexcept = 0;
    // For those who look at many orders again and again. Valid as long as the mover.
    virtual order_end_mark mark_of(ticket which) const noexcept = 0;
    // The same for an order that is overdue: asks the GPU, and launches a kernel where one is
    // missing.
    virtual ucs_status_t ask(ticket which) noexcept = 0;
    // Its holder has seen that it has ended.
    virtual void release(ticket which) noexcept = 0;

    // The kernel leaves at once; it may be launched again. Does not wait.
    virtual void leave() noexcept = 0;
};

}  // namespace cuda_nc::gpu
