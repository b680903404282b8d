// A layout's shape in a few words, for the statistics, which count messages with the same text
// together.
#pragma once

#include <string>

#include "ucs/layout/layout_view.hpp"

namespace cuda_nc::dt {

// "strided 8 B", "strided 3-D 64 B", "repeated 4 blocks, 20 B", "irregular ~120 B". Throws
// std::bad_alloc.
std::string shape_text(const layout_view &view);

}  // namespace cuda_nc::dt
