#include "ucs/gpu/given_order.hpp"

namespace cuda_nc::gpu {

bool given_order::give(device &on, const transfer &work) noexcept {
    mover *by = work.length <= longest_order ? on.get_mover() : nullptr;
    if (by == nullptr) {
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
    if (by->give(&one, 1, &which_) == 0) {
        return false;
    }
    by_ = by;
    status_ = UCS_INPROGRESS;
    polls_ = 0;
    return true;
}

void given_order::launched_instead(device &on) noexcept {
    if (mover *by = on.get_mover()) {
        by->expect();
    }
}

void given_order::note(ucs_status_t status) noexcept {
    status_ = status;
    if (status != UCS_INPROGRESS) {
        by_->release(which_);
    }
}

ucs_status_t given_order::query() noexcept {
    // An order that runs for longer may never end.
    constexpr auto doubt = std::chrono::milliseconds(5);
    constexpr unsigned polls_between_looks = 64;
    if (status_ != UCS_INPROGRESS) {
        return status_;
    }
    note(by_->state(which_));
    if (status_ == UCS_INPROGRESS && ++polls_ % polls_between_looks == 0) {
        const auto now = std::chrono::steady_clock::now();
        if (polls_ == polls_between_looks) {
            polled_since_ = now;
        } else if (now - polled_since_ >= doubt) {
            note(by_->ask(which_));
        }
    }
    return status_;
}

ucs_status_t given_order::await() noexcept {
    while (query() == UCS_INPROGRESS) {
    }
    return status_;
}

void given_order::forget() noexcept {
    await();
    by_ = nullptr;
}

}  // namespace cuda_nc::gpu
