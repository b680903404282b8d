// A layout's bytes, for comparison with a fake datatype's.
#pragma once

#include <vector>

#include "ucs/layout/layout.hpp"

namespace cuda_nc::hooks::test {

// Displacement of each packed byte.
inline std::vector<ptrdiff_t> bytes_of(const layout &what) {
    std::vector<ptrdiff_t> all;
    layout_cursor cursor(what, 0);
    for (block one = cursor.next(UINT64_MAX); one.length != 0; one = cursor.next(UINT64_MAX)) {
        for (uint64_t i = 0; i < one.length; ++i) {
            all.push_back(one.displacement + static_cast<int64_t>(i));
        }
    }
    return all;
}

}  // namespace cuda_nc::hooks::test
