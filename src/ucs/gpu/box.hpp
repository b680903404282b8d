// Rows that a GPU's copy engines move from one layout to another in one call.
#pragma once

#include <cstdint>

#include "ucs/layout/layout_view.hpp"

namespace cuda_nc::gpu {

// `slices` x `rows` x `width` bytes, as cudaMemcpy3D moves them. On each side (source, target) a
// row begins `pitch` bytes after the one before, and a slice `rows_of_slice` pitches after the one
// before.
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

// Finds the box that moves the first `length` packed bytes of `source` to those of `target`; both
// have at least so many. False, with *box_p unchanged: one side is a list of blocks, a stride is
// negative, rows overlap, or more than two strides are needed. The blocks of the two sides may
// differ in length.
bool find_box(const layout_view &source, const layout_view &target, uint64_t length,
              box *box_p) noexcept;

}  // namespace cuda_nc::gpu
