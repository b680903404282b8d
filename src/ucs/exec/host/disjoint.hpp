// Proofs that blocks may be moved in any order.
#pragma once

#include <cstdint>

#include "ucs/layout/layout_view.hpp"

namespace cuda_nc::exec {

// Whether no two blocks overlap among all repetitions of the list over dims [0, num_dims). A proof
// by nested spans: false where it fails, though they may be disjoint. A list of more than
// max_short_list blocks is looked at once, and only where the view has room for the result.
bool blocks_are_disjoint(const layout_view &view, unsigned num_dims) noexcept;

// Bytes from the first to the last byte of a list of any length, or 0 where its blocks overlap, or
// where it would take more memory than the list's packed size to know. O(1) a block; allocates
// where the blocks are not in ascending order.
uint64_t find_disjoint_span(const layout_view &view) noexcept;

}  // namespace cuda_nc::exec
