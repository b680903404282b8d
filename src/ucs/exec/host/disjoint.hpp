// Proofs that blocks may be moved in any order.
#pragma once

#include <cstdint>

#include "ucs/layout/layout_view.hpp"

namespace cuda_nc::exec {

// Whether no two blocks overlap among all repetitions of the list over dims [0, num_dims). A proof
// by nested spans: false where it fails, though they may be disjoint. Lists of more than
// max_short_list blocks are never proved.
bool blocks_are_disjoint(const layout_view &view, unsigned num_dims) noexcept;

}  // namespace cuda_nc::exec
