// When to look again whether a process has gone, whose end was noticed before it was through: the
// system may close its connections long before its GPUs' memory.
#pragma once

#include <chrono>

#include "ucs/base/tick_clock.hpp"

namespace cuda_nc::uct {

class later_looks {
  public:
    using clock = tick_clock;

    // From now on: after `shortest`, and then after pauses that double, `most` times in all. True:
    // at once, too, for it did not begin a moment ago.
    bool begin() noexcept {
        const auto now = clock::now();
        left_ = most;
        pause_ = shortest;
        next_ = now + pause_;
        const bool at_once = !has_begun_ || now - begun_ >= shortest;
        has_begun_ = true;
        begun_ = at_once ? now : begun_;
        return at_once;
    }
    void end() noexcept { left_ = 0; }
    bool are_due() noexcept {
        if (left_ == 0 || clock::now() < next_) {
            return false;
        }
        --left_;
        pause_ *= 2;
        next_ = clock::now() + pause_;
        return true;
    }
    bool are_to_come() const noexcept { return left_ != 0; }

    static constexpr auto shortest = std::chrono::milliseconds(250);
    static constexpr unsigned most = 8;  // the last one after a minute

  private:
    clock::time_point next_, begun_;
    bool has_begun_ = false;
    clock::duration pause_{};
    unsigned left_ = 0;
};

}  // namespace cuda_nc::uct
