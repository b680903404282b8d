// On-line folding: a stream of equal items (a block, or a short list of blocks) that start at given
// displacements becomes dims, innermost first. Private to the layout builder.
#pragma once

#include <cstdint>

#include "ucs/layout/layout_view.hpp"

namespace cuda_nc {

// An odometer. All levels but the outermost are closed: their counts are known, and the next start
// is predicted. At the end of a full turn a start that does not continue the outermost level closes
// it and opens a level around everything seen so far.
class start_folder {
  public:
    // False where the starts are not those of nested strides; the folder is useless afterwards.
    bool add(int64_t start) noexcept {
        if (items_ == 0) {
            first_ = start;
            items_ = 1;
            return true;
        }
        if (turn_position_ != 0) {
            if (start != wrapping_add(open_start_, in_turn_)) {
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

    // Every turn is complete: dims() say exactly what was added.
    bool complete() const noexcept { return turn_position_ == 0; }

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
    // Displacements may be anything a caller says; a sum that wraps never equals a real start twice
    // in a row and is refused with the layout's bounds.
    static int64_t wrapping_add(int64_t a, int64_t b) noexcept {
        return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    }
    static int64_t wrapping_mul(int64_t a, uint64_t b) noexcept {
        return static_cast<int64_t>(static_cast<uint64_t>(a) * b);
    }

    // Moves the expectation to the next item of the step under way.
    void advance() noexcept {
        if (turn_ == 1) {
            ++dims_[levels_ - 1].count;
            return;
        }
        if (++turn_position_ == turn_) {
            turn_position_ = 0;
            in_turn_ = 0;
            ++dims_[levels_ - 1].count;
            for (uint64_t &index : index_) {
                index = 0;
            }
            return;
        }
        for (unsigned d = 0;; ++d) {
            in_turn_ = wrapping_add(in_turn_, dims_[d].stride);
            if (++index_[d] < dims_[d].count) {
                return;
            }
            index_[d] = 0;
            in_turn_ = wrapping_add(in_turn_, static_cast<int64_t>(-static_cast<uint64_t>(
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
            turn_ *= dims_[levels_ - 1].count;
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
    uint64_t turn_ = 1;           // items in one step of the outermost level
    uint64_t turn_position_ = 0;  // items seen of the step under way
    int64_t open_start_ = 0;      // where the step under way started
    int64_t in_turn_ = 0;         // displacement of the expected item relative to it
    uint64_t index_[max_dims] = {};
};

}  // namespace cuda_nc
