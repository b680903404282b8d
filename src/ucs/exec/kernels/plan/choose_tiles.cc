#include "ucs/exec/kernels/plan/choose.hpp"

#include "ucs/exec/kernels/move/tiles.hpp"

namespace cuda_nc::exec {
namespace {

// The dim that is nearly contiguous in memory, where dim 0 is not. 0: there is none.
unsigned find_across(const part &a) {
    unsigned best = 0;
    if (magnitude(a.dims[0].stride) < 64) {
        return 0;
    }
    for (unsigned d = 1; d < a.num_dims; ++d) {
        uint64_t stride = magnitude(a.dims[d].stride);
        if (stride != 0 && stride < 32 && stride < magnitude(a.dims[best].stride)) {
            best = d;
        }
    }
    return best;
}

}  // namespace

bool choose_tiles(const part &a, unsigned align_log2, uint32_t most, kernel_choice *c) {
    uint32_t width = a.block_length;
    if (a.list || a.num_dims < 2 || a.dir == gpu::direction::copy || width > most ||
        (width & (width - 1)) != 0 || (1u << align_log2) < width) {
        return false;
    }
    unsigned across = find_across(a);
    uint32_t along_count = a.dims[0].by_count.divisor;
    if (across == 0 || along_count < 16) {
        return false;
    }
    tile_shape &s = c->tiles;
    s.pitch = width * along_count;
    for (unsigned d = 1; d < across; ++d) {
        s.middle *= a.dims[d].by_count.divisor;
    }
    s.pitch *= s.middle;
    s.stride_across = a.dims[across].stride;
    uint32_t last = a.first + a.length - 1;
    uint32_t outer_begin = 0, outer_end = 1;
    if (across + 1 < a.num_dims) {
        s.count_across = a.dims[across].by_count.divisor;
        s.plane = s.pitch * s.count_across;
        outer_begin = a.first / s.plane;
        outer_end = last / s.plane + 1;
    }
    if (outer_end - outer_begin == 1) {
        s.across_begin = (a.first - outer_begin * s.plane) / s.pitch;
        s.count_across = (last - outer_begin * s.plane) / s.pitch + 1;
    }
    if (s.count_across - s.across_begin < 8) {
        return false;
    }
    s.across_begin &= ~uint32_t{31};  // whole sectors, and pairs of elements
    s.across_first = a.dir == gpu::direction::unpack;
    s.outer_begin = outer_begin;
    c->word_log2 = static_cast<uint8_t>(__builtin_ctz(width));
    uint32_t dim = width >= 8 ? tile_dim<8> : tile_dim<1>;
    s.tiles_along = divide_up(along_count, dim);
    s.tiles_across = divide_up(s.count_across - s.across_begin, dim);
    s.by_tiles_along = fast_divide32(s.tiles_along);
    s.by_tiles_across = fast_divide32(s.tiles_across);
    s.by_middle = fast_divide32(s.middle);
    s.count = s.tiles_along * s.tiles_across * s.middle * (outer_end - outer_begin);
    c->how = method::tiles;
    return true;
}

}  // namespace cuda_nc::exec
