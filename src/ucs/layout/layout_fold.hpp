// Finds nested strides: the starts of equal items (a block, or a short list of blocks), given one
// after the other, become dims, innermost first. Private to the layout builder.
#pragma once

#include <cstdint>

#include "ucs/layout/layout_view.hpp"

namespace cuda_nc {

// Counts like an odometer. The counts of all levels but the outermost are known, so the next start
// can be predicted. After a whole step of the outermost level, a start that does not continue that
// level fixes its count and opens a new level around all items so far.
class start_folder {
  public:
    // False: the starts are not those of nested strides; the folder cannot be used any more.
    bool add(int64_t start) noexcept {
        if (items_ == 0) {
            first_ = start;
            items_ = 1;
            return true;
        }
        if (step_position_ != 0) {
            if (start != wrapping_add(open_start_, in_step_)) {
                return false;
            }
        } else if (levels_ == 0 || start != open_start_next()) {
            if (!open_level(start)) {
                return false;
            }
        } else {
            open_start_ = start;
        }
        ++items_;
        advance();
        return true;
    }

    // The last step is whole: the dims describe exactly the items that were added.
    bool complete() const noexcept { return step_position_ == 0; }

    int64_t first() const noexcept { return first_; }
    uint64_t items() const noexcept { return items_; }
    unsigned levels() const noexcept { return levels_; }
    const layout_dim &dim(unsigned level) const noexcept { return dims_[level]; }

    // Start of item `index`, for those that were added.
    int64_t start_of(uint64_t index) const noexcept {
        int64_t sum = first_;
        for (unsigned d = 0; d < levels_ && index != 0; ++d) {
            bool outermost = d + 1 == levels_;
            uint64_t here = outermost ? index : index % dims_[d].count;
            sum = wrapping_add(sum, wrapping_mul(dims_[d].stride, here));
            index = outermost ? 0 : index / dims_[d].count;
        }
        return sum;
    }

  private:
    // Callers may give any displacement. A sum that wraps never equals a real start twice in a row,
    // and the check of the layout's bounds refuses it.
    static int64_t wrapping_add(int64_t a, int64_t b) noexcept {
        return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    }
    static int64_t wrapping_mul(int64_t a, uint64_t b) noexcept {
        return static_cast<int64_t>(static_cast<uint64_t>(a) * b);
    }

    // Goes on to the next item of the current step.
    void advance() noexcept {
        if (step_items_ == 1) {
            ++dims_[levels_ - 1].count;
            return;
        }
        if (++step_position_ == step_items_) {
            step_position_ = 0;
            in_step_ = 0;
            ++dims_[levels_ - 1].count;
            for (uint64_t &index : index_) {
                index = 0;
            }
            return;
        }
        for (unsigned d = 0;; ++d) {
            in_step_ = wrapping_add(in_step_, dims_[d].stride);
            if (++index_[d] < dims_[d].count) {
                return;
            }
            index_[d] = 0;
            in_step_ = wrapping_add(in_step_, static_cast<int64_t>(-static_cast<uint64_t>(
                                                  wrapping_mul(dims_[d].stride, dims_[d].count))));
        }
    }

    int64_t open_start_next() const noexcept {
        const layout_dim &open = dims_[levels_ - 1];
        return wrapping_add(first_, wrapping_mul(open.stride, open.count));
    }

    bool open_level(int64_t start) noexcept {
        if (levels_ == max_dims) {
            return false;
        }
        if (levels_ != 0) {
            step_items_ *= dims_[levels_ - 1].count;
        }
        dims_[levels_].count = 1;
        dims_[levels_].stride =
            wrapping_add(start, static_cast<int64_t>(-static_cast<uint64_t>(first_)));
        ++levels_;
        open_start_ = start;
        return true;
    }

    int64_t first_ = 0;
    uint64_t items_ = 0;
    unsigned levels_ = 0;
    layout_dim dims_[max_dims];
    uint64_t step_items_ = 1;     // items in one step of the outermost level
    uint64_t step_position_ = 0;  // items of the current step so far
    int64_t open_start_ = 0;      // start of the current step
    int64_t in_step_ = 0;         // displacement of the next item from open_start_
    uint64_t index_[max_dims] = {};
};

}  // namespace cuda_nc
