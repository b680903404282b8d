// Proves that blocks do not overlap, and so may be moved in any order.
#pragma once

#include <cstdint>

#include "ucs/layout/layout.hpp"

namespace cuda_nc::exec {

// True: no two blocks overlap, among all repetitions of the list over dims [0, num_dims). False:
// not proved (by nested spans); they may still be disjoint. A list of more than max_short_list
// blocks is examined once, and only where the view can keep the result.
bool blocks_are_disjoint(const layout_view &view, unsigned num_dims) noexcept;

// Whether some byte is of two blocks of `what`. Where the spans of blocks do not nest it looks at
// each block; unknown: these are more than 2^24. Throws std::bad_alloc.
enum class overlap : uint8_t { none, some, unknown };
overlap find_overlap(const layout &what);

// Whether a byte of `what` at one address may be a byte of `what` at the other. False is proved:
// the spans lie apart, or all blocks are disjoint in the same way, as those of two columns of a
// matrix.
bool may_overlap(const layout &what, const void *one, const void *other) noexcept;

// Bytes from the first to the last byte of a list of any length. 0: blocks overlap, or finding out
// needs more memory than the list's packed size. O(1) a block; allocates where the blocks are not
// in ascending order.
uint64_t find_disjoint_span(const layout_view &view) noexcept;

}  // namespace cuda_nc::exec
