// How soon after each other orders usually come: how long a mover's kernel waits for the next one,
// and whether it pays to have one at all.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cuda_nc::gpu {

class arrival_rhythm {
  public:
    // `most`: the longest that a kernel may wait, in nanoseconds; not 0.
    explicit arrival_rhythm(uint64_t most) noexcept : most_(most), mean_(most / 4) {}

    // Orders come now, by a clock in nanoseconds that never goes back.
    void note(uint64_t now) noexcept {
        if (last_ != 0) {
            // A long pause says no more than that nobody should have waited: it is forgotten after
            // some orders.
            const uint64_t distance = std::min(now - last_, 4 * most_);
            mean_ = mean_ - mean_ / 8 + distance / 8;
        }
        last_ = now;
    }
    // Orders come so rarely that each would need a launch: one of its own is shorter.
    bool pays() const noexcept { return mean_ <= most_; }
    // How long a kernel should wait for the next order.
    uint64_t wait() const noexcept { return std::min(most_, std::max(4 * mean_, most_ / 8)); }

  private:
    const uint64_t most_;
    uint64_t mean_, last_ = 0;
};

}  // namespace cuda_nc::gpu
