// What `nc_perftest tune` measures: layouts whose times stand for those of their kind.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ucs/model/profile.hpp"

namespace cuda_nc::tools {

struct tune_point {
    model::family what;
    uint8_t align_log2;
    uint32_t block;    // bytes, mean
    const char *text;  // a family of layouts: `*` is the number of blocks, or a matrix' side; or
                       // one of a size of its own
    size_t misalign;
    double touched;  // bytes of memory touched on both sides, for each packed byte
};

const std::vector<tune_point> &gpu_points();
const std::vector<tune_point> &host_points();

// The point's layout with about `touched` bytes touched on both sides, but no more blocks than may
// be listed in a moment and no more than `most` bytes on the laid-out side.
std::string text_of(const tune_point &point, double touched, double most);

}  // namespace cuda_nc::tools
