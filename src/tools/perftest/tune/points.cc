#include "tools/perftest/tune/points.hpp"

#include <algorithm>
#include <cmath>

#include "tools/perftest/layouts/sizes.hpp"

namespace cuda_nc::tools {
namespace {

using model::family;

double floor_power(double value) {
    return std::exp2(std::floor(std::log2(std::max(value, 1.0))));
}

}  // namespace

const std::vector<tune_point> &gpu_points() {
    static const std::vector<tune_point> all = {
        {family::strided, 3, 8, "vector:*,8,16", 0, 3},
        {family::strided, 3, 16, "vector:*,16,32", 0, 3},
        {family::strided, 3, 64, "vector:*,64,128", 0, 3},
        {family::strided, 3, 256, "vector:*,256,512", 0, 2},
        {family::strided, 3, 4096, "vector:*,4K,8K", 0, 2},
        {family::strided, 3, 65536, "vector:*,64K,128K", 0, 2},
        {family::strided, 2, 4, "vector:*,4,8", 0, 3},
        {family::strided, 2, 12, "vector:*,12,20", 0, 3},
        {family::strided, 2, 100, "vector:*,100,200", 0, 3},
        {family::strided, 2, 1020, "vector:*,1020,2044", 0, 2},
        {family::strided, 0, 3, "vector:*,3,6", 1, 3},
        {family::strided, 0, 12, "vector:*,12,20", 1, 3},
        {family::strided, 0, 17, "struct:24,*,0:17", 0, 2.5},
        {family::strided, 0, 64, "vector:*,64,128", 1, 3},
        {family::strided, 0, 256, "vector:*,256,512", 1, 2},
        {family::strided, 0, 4096, "vector:*,4K,8K", 1, 2},
        {family::sparse, 3, 8, "vector:*,8,1000", 0, 9},
        {family::sparse, 3, 24, "vector:*,24,4096", 0, 4},
        {family::sparse, 3, 64, "vector:*,64,1024", 0, 2},
        {family::sparse, 0, 12, "vector:*,12,1001", 1, 6.5},
        {family::listed, 3, 8, "indexed:*,8,8,8,1", 0, 3.5},
        {family::listed, 3, 64, "indexed:*,64,64,8,1", 0, 2.1},
        {family::listed, 3, 1024, "indexed:*,1K,1K,8,1", 0, 2},
        {family::listed, 0, 12, "indexed:*,12,12,1,1", 0, 3.3},
        {family::listed, 0, 250, "indexed:*,250,250,1,1", 0, 2.2},
        {family::uneven, 3, 64, "indexed:*,8,120,8,1", 0, 2.5},
        {family::uneven, 3, 512, "indexed:*,8,1016,8,1", 0, 2.1},
        {family::uneven, 3, 2052, "indexed:*,8,4096,8,1", 0, 2},
        {family::uneven, 3, 8192, "indexed:*,8,16376,8,1", 0, 2},
        {family::uneven, 0, 60, "indexed:*,1,119,1,1", 0, 2.5},
        {family::uneven, 0, 512, "indexed:*,1,1023,1,1", 0, 2.1},
        {family::uneven, 0, 2048, "indexed:*,1,4095,1,1", 0, 2},
        {family::transposed, 2, 4, "transpose:*,4", 0, 2},
        {family::transposed, 3, 8, "transpose:*,8", 0, 2},
        {family::pinned, 0, 12, "vector:*,12,20", 1, 1},
        {family::pinned, 0, 64, "vector:*,64,128", 1, 1},
        {family::pinned, 0, 1024, "vector:*,1K,2K", 1, 1},
        {family::pinned, 2, 4, "vector:*,4,8", 0, 1},
        {family::pinned, 2, 12, "vector:*,12,20", 0, 1},
        {family::pinned, 3, 8, "vector:*,8,16", 0, 1},
        {family::pinned, 3, 64, "vector:*,64,128", 0, 1},
    };
    return all;
}

const std::vector<tune_point> &host_points() {
    static const std::vector<tune_point> all = {
        {family::strided, 3, 8, "vector:*,8,16", 0, 3},
        {family::strided, 3, 64, "vector:*,64,128", 0, 2},
        {family::strided, 3, 256, "vector:*,256,512", 0, 2},
        {family::strided, 3, 4096, "vector:*,4K,8K", 0, 2},
        {family::strided, 0, 12, "vector:*,12,20", 1, 3},
        {family::strided, 0, 64, "vector:*,64,128", 1, 2},
        {family::sparse, 3, 8, "vector:*,8,1000", 0, 9},
        {family::sparse, 3, 64, "vector:*,64,1024", 0, 2},
        {family::listed, 3, 8, "indexed:*,8,8,8,1", 0, 3.5},
        {family::listed, 3, 64, "indexed:*,64,64,8,1", 0, 2.1},
        {family::listed, 3, 1024, "indexed:*,1K,1K,8,1", 0, 2},
        {family::uneven, 0, 64, "indexed:*,1,127,1,1", 0, 2.5},
        {family::uneven, 0, 2048, "indexed:*,1,4095,1,1", 0, 2},
    };
    return all;
}

std::string text_of(const tune_point &point, double touched, double most) {
    if (!is_family(point.text)) {
        return point.text;
    }
    double blocks = floor_power(touched / point.touched) / point.block;
    const bool listed = point.what == family::listed || point.what == family::uneven;
    if (listed) {  // 4 million take half a second to draw
        blocks = std::min(blocks, point.block <= 8 ? 4 * 1048576.0 : 1048576.0);
    }
    // What a block takes on the laid-out side, at most.
    const double pitch =
        point.what == family::sparse ? std::max(4096.0, 16.0 * point.block) : 4.0 * point.block;
    blocks = std::max(1.0, std::min(blocks, most / pitch));
    if (point.what == family::transposed) {
        return member_text(point.text, static_cast<uint64_t>(floor_power(std::sqrt(blocks))));
    }
    return member_text(point.text, static_cast<uint64_t>(blocks));
}

}  // namespace cuda_nc::tools
