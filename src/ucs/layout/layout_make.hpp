// Makes a layout from blocks and dims. Private to src/ucs/layout.
#pragma once

#include <memory>

#include "ucs/layout/layout.hpp"

namespace cuda_nc {

// `storage` null: the empty layout. dims of count 1 are dropped, neighbours merged. Null where a
// total or a bound exceeds 2^63 - 1 bytes. Throws std::bad_alloc.
layout_ref make_layout(std::shared_ptr<const layout::block_storage> storage, unsigned num_dims,
                       const layout_dim *dims);

}  // namespace cuda_nc
