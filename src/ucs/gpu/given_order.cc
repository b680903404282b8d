#include "ucs/gpu/given_order.hpp"

#include <chrono>

namespace cuda_nc::gpu {

bool given_order::give(device &on, const move_order &one) noexcept {
    mover *by = on.get_mover();
    if (by == nullptr || by->give(&one, 1, &which_) == 0) {
        return false;
    }
    by_ = by;
    status_ = UCS_INPROGRESS;
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
    if (status_ == UCS_INPROGRESS) {
        note(by_->state(which_));
    }
    return status_;
}

ucs_status_t given_order::await() noexcept {
    // An order that runs for longer may never end: the GPU is asked.
    constexpr auto doubt = std::chrono::milliseconds(5);
    constexpr unsigned polls_between_looks = 1024;
    if (query() != UCS_INPROGRESS) {
        return status_;
    }
    const auto begun = std::chrono::steady_clock::now();
    for (unsigned polls = 1; query() == UCS_INPROGRESS; ++polls) {
        if (polls % polls_between_looks == 0 && std::chrono::steady_clock::now() - begun >= doubt) {
            note(by_->ask(which_));
        }
    }
    return status_;
}

void given_order::forget() noexcept {
    await();
    by_ = nullptr;
}

}  // namespace cuda_nc::gpu
