// Rows that one call of a GPU's copy engines moves, from one layout to another.
#pragma once

#include <cstdint>

#include "ucs/layout/layout_view.hpp"

namespace cuda_nc::gpu {

// `slices` times `rows` times `width` bytes. The next row of one side lies a pitch further, its
// next slice as many pitches as its rows_of_slice.
struct box {
    struct side {
        int64_t displacement = 0;  // of the first row
        uint64_t pitch = 0;        // bytes, at least the width
        uint64_t rows_of_slice = 0;
    };
    uint64_t width = 0, rows = 1, slices = 1;
    side source, target;

    uint64_t all_rows() const noexcept { return rows * slices; }
};

// Whether the first `length` packed bytes of both, which are at least as long, are such rows. They
// are not where one is a list of blocks, a stride is negative, rows overlap, or there would be more
// than two strides; blocks of both sides may be of different lengths.
bool find_box(const layout_view &source, const layout_view &target, uint64_t length,
              box *box_p) noexcept;

}  // namespace cuda_nc::gpu
