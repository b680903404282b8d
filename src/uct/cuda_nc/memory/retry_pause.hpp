// For how long a way that has failed is not taken. The failure may pass: another process was too
// busy to share its memory, or this one had no descriptors left. Or nothing helps, and each try is
// a message that goes the slowest way.
#pragma once

#include <algorithm>
#include <chrono>

#include "ucs/base/tick_clock.hpp"

namespace cuda_nc::uct {

class retry_pause {
  public:
    using clock = tick_clock;

    // The way has failed. Doubled each time. (Others that were under way fail, too.)
    void begin(clock::time_point now = clock::now()) noexcept {
        constexpr std::chrono::seconds shortest{1}, longest{64};
        if (now >= end_) {
            length_ = std::min(std::max(shortest, 2 * length_), longest);
            end_ = now + length_;
        }
    }
    bool is_on() const noexcept { return has_failed() && is_on(clock::now()); }
    bool is_on(clock::time_point now) const noexcept { return has_failed() && now < end_; }
    // It works: the next failure is a first one. In the pause only what was under way before it
    // can say so: that tells nothing of what has failed.
    void forget() noexcept {
        if (has_failed()) {
            forget(clock::now());
        }
    }
    void forget(clock::time_point now) noexcept {
        if (!is_on(now)) {
            *this = {};
        }
    }

  private:
    bool has_failed() const noexcept { return length_ != std::chrono::seconds{0}; }

    clock::time_point end_;
    std::chrono::seconds length_{0};  // of the last pause
};

}  // namespace cuda_nc::uct
