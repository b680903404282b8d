#include "ucs/gpu/given_orders.hpp"

#include <sched.h>

#include <algorithm>

namespace cuda_nc::gpu {

bool given_orders::give(device &on, const transfer &work, giving how) noexcept {
    if (work.length > longest_order) {
        return false;
    }
    const layout_view packed = contiguous_view(work.packed_offset + work.length);
    // Of a pack or an unpack: where packed byte 0 would lie.
    char *first = reinterpret_cast<char *>(reinterpret_cast<uintptr_t>(work.packed) -
                                           static_cast<uintptr_t>(work.packed_offset));
    move_order one;
    one.packed_offset = work.packed_offset;
    one.length = work.length;
    one.into_own_memory = work.into_own_memory;
    one.source_base = work.base;
    one.target = &work.layout;
    one.target_base = work.packed;
    if (work.dir == direction::pack) {
        one.source = &work.layout;
        one.target = &packed;
        one.target_base = first;
    } else if (work.dir == direction::unpack) {
        one.source = &packed;
        one.source_base = first;
        one.target_base = work.base;
    }
    return give(on, &one, 1, how);
}

bool given_orders::give(device &on, const move_order *orders, size_t number, giving how) noexcept {
    mover *by = number <= most ? on.get_mover() : nullptr;
    const size_t taken = by != nullptr ? by->give(orders, number, tickets_, how).number : 0;
    if (taken == 0) {
        return false;
    }
    by_ = by;
    under_way_ =
        static_cast<size_t>(std::remove(tickets_, tickets_ + number, mover::ticket{0}) - tickets_);
    status_ = taken == number ? UCS_OK : UCS_ERR_CANCELED;
    polls_ = 0;
    return true;
}

void given_orders::launched_instead(device &on) noexcept {
    if (mover *by = on.get_mover()) {
        by->expect();
    }
}

// Of the last one that is under way.
void given_orders::note(ucs_status_t status) noexcept {
    if (status == UCS_INPROGRESS) {
        return;
    }
    by_->release(tickets_[--under_way_]);
    if (status_ == UCS_OK || (status_ == UCS_ERR_CANCELED && status != UCS_OK)) {
        status_ = status;
    }
}

ucs_status_t given_orders::query() noexcept {
    // An order that runs for longer may never end.
    constexpr auto doubt = std::chrono::milliseconds(5);
    constexpr unsigned polls_between_looks = 64;
    for (size_t before = 0; under_way_ != before && under_way_ != 0;) {
        before = under_way_;
        note(by_->state(tickets_[under_way_ - 1]));
    }
    if (under_way_ != 0 && ++polls_ % polls_between_looks == 0) {
        const auto now = tick_clock::now();
        if (polls_ == polls_between_looks) {
            polled_since_ = now;
        } else if (now - polled_since_ >= doubt) {
            note(by_->ask(tickets_[under_way_ - 1]));
        }
    }
    return under_way_ != 0 ? UCS_INPROGRESS : status_;
}

ucs_status_t given_orders::await() noexcept {
    // Where processes or threads share a core, the others must go on: the order may be theirs.
    constexpr unsigned quick_polls = 512, polls_between_yields = 64;
    for (unsigned polls = 1; query() == UCS_INPROGRESS; ++polls) {
        relax();
        if (polls > quick_polls && polls % polls_between_yields == 0) {
            sched_yield();
        }
    }
    return status_;
}

void given_orders::forget() noexcept {
    await();
    by_ = nullptr;
}

}  // namespace cuda_nc::gpu
