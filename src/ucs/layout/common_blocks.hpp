// The blocks that two layouts of one packed size have in common.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ucs/layout/layout.hpp"

namespace cuda_nc {

// Bytes that are contiguous on both sides.
struct common_block {
    int64_t left, right;  // displacements
    uint64_t length;      // bytes
};

// Walks them in packed order. May be copied, to go back to a place. Both layouts must outlive it.
class common_blocks {
  public:
    common_blocks(const layout &left, const layout &right) noexcept
        : left_(left, 0), right_(right, 0) {}

    // The next one, or its first max_length bytes (1 or more); length 0 at the end.
    common_block next(uint64_t max_length) noexcept {
        left_block_ = left_block_.length != 0 ? left_block_ : left_.next(UINT64_MAX);
        right_block_ = right_block_.length != 0 ? right_block_ : right_.next(UINT64_MAX);
        const common_block one = {left_block_.displacement, right_block_.displacement,
                                  std::min({left_block_.length, right_block_.length, max_length})};
        advance(&left_block_, one.length);
        advance(&right_block_, one.length);
        return one;
    }

    // How many come, counted up to `most`.
    uint64_t count(uint64_t most) const noexcept {
        common_blocks walk = *this;
        uint64_t number = 0;
        while (number < most && walk.next(UINT64_MAX).length != 0) {
            ++number;
        }
        return number;
    }

  private:
    static void advance(block *one, uint64_t length) noexcept {
        one->displacement = static_cast<int64_t>(static_cast<uint64_t>(one->displacement) + length);
        one->length -= length;
    }

    layout_cursor left_, right_;
    block left_block_{0, 0}, right_block_{0, 0};
};

}  // namespace cuda_nc
