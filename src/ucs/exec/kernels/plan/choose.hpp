// The methods that policy.cc asks first, each with its own conditions. Private to this folder.
#pragma once

#include "ucs/exec/kernels/plan/policy.hpp"

namespace cuda_nc::exec {

// Each returns true and fills the choice's method, word and numbers where the method serves part
// `a` best; false with an unchanged method where it does not. `align_log2`: what divides all
// addresses, strides and lengths.

// Transposes of elements of at most `most` bytes.
bool choose_tiles(const part &a, unsigned align_log2, uint32_t most, kernel_choice *c);

// Lists of blocks of different lengths that are short enough for some lanes each. False also where
// the part is a small piece of its list, or one block is so long that its lanes would take too many
// steps.
bool choose_blocks(const part &a, unsigned align_log2, const gpu::kernel_rules &rules,
                   kernel_choice *c);

// The same for a pipe or a pull: only short lists that are repeated. Their tables stay in the
// cache, while a warp's unit would take longer to set up than the link takes for its bytes. Sets
// the word alone.
bool choose_short_blocks(const part &a, unsigned align_log2, kernel_choice *c);

}  // namespace cuda_nc::exec
