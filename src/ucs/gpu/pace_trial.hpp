// Whether a program goes on sooner with a mover's kernel or without one, found by trying both.
//
// A kernel changes what it serves: a program that synchronises the device waits for it too, and
// compute kernels have it beside them. How soon orders come after each other does not tell that
// beforehand. So now and then a stretch of orders goes the other way, and the way by which orders
// came sooner is kept. A way that is confirmed is put to the test less and less often; it is given
// up when two trials in a row say so. The first stretch says nothing: what a program does first
// takes longer.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace cuda_nc::gpu {

class pace_trial {
  public:
    // `number` orders come now, by a clock in nanoseconds that never goes back. Without a kernel
    // more come at a time.
    void note(uint64_t now, unsigned number) noexcept {
        const uint64_t distance = last_ != 0 ? now - last_ : 0;
        last_ = now;
        // The first ones still feel the way before. Long pauses are the program's own.
        if (count_ >= settling) {
            measure({std::min(distance, longest * number), number});
        }
        count_ += number;
        if (measured_ >= stretch && waits_ >= least_waits) {
            end_stretch();
        }
    }

    // Whether the orders that come are to have a kernel.
    bool allows() const noexcept { return favours_ != tries_; }
    // The same of orders that are no part of the trials, and may be the only ones for long.
    bool favours() const noexcept { return favours_; }

  private:
    static constexpr unsigned settling = 8, stretch = 64;  // orders
    // Where many come at a time a few waits, of an exchange or two, say little.
    static constexpr unsigned least_waits = 32;
    static constexpr unsigned least_between = 8, most_between = 256;  // trials, in stretches
    static constexpr uint64_t longest = 400000;                       // nanoseconds, of an order

    struct wait {
        uint64_t distance;
        unsigned orders;
    };
    void measure(wait one) noexcept {
        elapsed_ += one.distance;
        measured_ += one.orders;
        ++waits_;
        for (wait &other : longest_waits_) {
            if (one.distance > other.distance) {
                std::swap(one, other);
            }
        }
    }
    // How long the stretch took, but for its two longest distances: these say more of what else the
    // machine does than of the way.
    uint64_t take_elapsed() noexcept {
        for (const wait &one : longest_waits_) {
            elapsed_ -= one.distance;
            measured_ -= one.orders;
        }
        const uint64_t elapsed = elapsed_ * stretch / measured_;
        elapsed_ = 0;
        count_ = measured_ = waits_ = 0;
        longest_waits_ = {};
        return elapsed;
    }

    // A kernel is preferred: what it saves the CPU shows in no distance.
    bool kernel_is_better() const noexcept { return pace_[1] <= pace_[0] + pace_[0] / 20; }

    void end_stretch() noexcept {
        const uint64_t elapsed = take_elapsed();
        if (!is_warm_) {
            is_warm_ = true;
            return;
        }
        uint64_t &pace = pace_[allows() ? 1 : 0];
        pace = pace == 0 || tries_ || doubts_ ? elapsed : (3 * pace + elapsed) / 4;
        if (!tries_) {
            tries_ = --until_trial_ == 0;
            return;
        }
        tries_ = false;
        const bool was_right = kernel_is_better() == favours_;
        if (!was_right && !doubts_) {
            doubts_ = true;
            until_trial_ = 1;
            return;
        }
        doubts_ = false;
        favours_ = kernel_is_better();
        between_ = was_right ? std::min(2 * between_, most_between) : least_between;
        until_trial_ = between_;
    }

    uint64_t last_ = 0, elapsed_ = 0;
    unsigned count_ = 0,
             measured_ = 0;  // orders of a stretch; those whose distances are in elapsed_
    unsigned waits_ = 0;     // how many distances these are
    std::array<wait, 2> longest_waits_{};
    bool is_warm_ = false, favours_ = true, tries_ = false, doubts_ = false;
    unsigned between_ = least_between, until_trial_ = 1;
    std::array<uint64_t, 2> pace_{};  // how long a stretch takes without a kernel, and with it
};

}  // namespace cuda_nc::gpu
