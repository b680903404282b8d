// How soon after each other orders usually come: how long a mover's kernel waits for the next one,
// and whether it pays to have one at all.
//
// A kernel that is there saves part of a launch for each order that comes while it waits. An order
// that misses it costs a launch more, or the time until one begins; and while it waits whoever
// synchronises the device waits with it. Orders often come in bursts, with long pauses: so what
// counts is how the distances are spread, not their mean.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace cuda_nc::gpu {

class arrival_rhythm {
  public:
    // `most`: the longest that a kernel may wait, in nanoseconds; not 0.
    explicit arrival_rhythm(uint64_t most) noexcept : most_(most) {
        for (unsigned i = 0; i < steps; ++i) {
            sure_[i] = bound(i) - std::min(bound(i) / 4, most_margin);
        }
    }

    // Orders come now, by a clock in nanoseconds that never goes back, of `bytes` on average.
    // `alone`: those before them were launched, and no kernel has waited since.
    //
    // By a kernel they would have ended sooner, and mostly the next ones would come sooner by that,
    // and by what their sender's kernel saves. Else messages between two processes whose distances
    // lie just above what is waited for would stay there, and those just below likewise.
    void note(uint64_t now, uint64_t bytes, bool alone = false) noexcept {
        saved_ += (saved_by(bytes) - saved_) / memory;
        if (last_ != 0) {
            add(now - last_, alone);
        }
        last_ = now;
    }
    // So many others came with the last one, and waited for each other: a kernel would have had
    // each when it came.
    void note_others(size_t number) noexcept {
        for (size_t i = 0; i < std::min<size_t>(number, memory); ++i) {
            add(0, false);
        }
    }

    // By a margin: what an order saves is not the same everywhere.
    bool pays() const noexcept { return best().gain > known_ * (saved_ / 5); }
    // Whether, besides, most orders come sooner after one than a kernel needs to begin: then it is
    // for several that one is launched, and the first of them may wait for it.
    bool in_bursts() const noexcept { return pays() && most_come_soon(); }
    // How long a kernel should wait for the next order.
    uint64_t wait() const noexcept { return best().wait; }

  private:
    static constexpr unsigned steps = 7;         // of the waiting time, each twice the one before
    static constexpr int64_t certain = 1 << 20;  // a share of all
    static constexpr unsigned memory_log2 = 5;
    static constexpr int64_t memory = 1 << memory_log2;  // orders, about
    // Nanoseconds, measured on H100s: what a kernel that is there saves for a short order, and for
    // each MiB besides; what the first of a burst loses by its launch; what one that comes by
    // itself does, which is launched before the kernel.
    static constexpr int64_t saved_at_least = 4000, saved_a_mib = 4000;
    static constexpr int64_t lost_in_bursts = 5000, lost_alone = 12000;
    static constexpr uint64_t begins = 20000;  // a kernel's launch, until its first order has ended
    static constexpr int64_t waited_per_cost = 16;  // to wait so long counts as one nanosecond
    struct choice {
        int64_t gain;
        uint64_t wait;
    };

    void add(uint64_t distance, bool alone) noexcept {
        for (unsigned i = 0; i < steps; ++i) {
            shares_[i] = faded(shares_[i]);
            waits_[i] = faded(waits_[i]);
        }
        known_ = faded(known_) + certain / memory;
        unsigned met = 0;
        while (met < steps && distance > sure_[met]) {
            ++met;
        }
        if (met == steps && alone && distance <= sure_[steps - 1] + 2 * saved_) {
            met = steps - 1;
        }
        if (met < steps) {
            shares_[met] += certain / memory;
            waits_[met] += static_cast<int64_t>(distance) * (certain / memory);
        }
    }

    static constexpr int64_t faded(int64_t share) noexcept {
        return share - (share >> memory_log2);  // none is negative
    }
    uint64_t bound(unsigned step) const noexcept {
        return std::max<uint64_t>(most_ >> (steps - 1 - step), 1);
    }

    static constexpr int64_t saved_by(uint64_t bytes) noexcept {
        constexpr uint64_t mib = uint64_t{1} << 20;
        const auto most = static_cast<int64_t>(std::min(bytes, mib));
        return saved_at_least + saved_a_mib * most / static_cast<int64_t>(mib);
    }
    bool most_come_soon() const noexcept {
        int64_t soon = 0;
        for (unsigned i = 0; i < steps && sure_[i] <= begins; ++i) {
            soon += shares_[i];
        }
        return soon > known_ / 2;
    }

    choice best() const noexcept {
        const int64_t lost = most_come_soon() ? lost_in_bursts : lost_alone;
        choice found{0, bound(steps - 1)};
        int64_t met = 0, waited = 0;  // the orders that come in time, and what they let it wait
        for (unsigned i = 0; i < steps; ++i) {
            const auto wait = static_cast<int64_t>(bound(i));
            met += shares_[i];
            waited += waits_[i];
            const int64_t missed = known_ - met;
            const int64_t gain =
                met * saved_ - missed * lost - (waited + missed * wait) / waited_per_cost;
            if (gain > found.gain) {
                found = {gain, bound(i)};
            }
        }
        // A few orders say nothing.
        return known_ >= certain / 5 ? found : choice{0, found.wait};
    }

    const uint64_t most_;
    // What is counted as met by waiting for bound(i): who comes later might be late. An order is
    // seen a microsecond or two after it is given; the rest is for how distances vary.
    static constexpr uint64_t most_margin = 10000;
    std::array<uint64_t, steps> sure_{};
    uint64_t last_ = 0;
    int64_t saved_ = saved_at_least;       // by an order, on average
    int64_t known_ = 0;                    // the share of distances that have been seen
    std::array<int64_t, steps> shares_{};  // of distances up to sure(i) and beyond the one before
    std::array<int64_t, steps> waits_{};   // these distances, by their shares
};

}  // namespace cuda_nc::gpu
