#include "ucs/exec/host/walk_order.hpp"

#include <algorithm>

namespace cuda_nc::exec {
namespace {

// Software prefetches blocks to write, unless nearly every line is used or blocks are long: then
// the processor's own prefetcher is as good or better (measured).
bool is_far_to_write(uint64_t stride, uint64_t length) {
    return length < 2048 && (stride >= 128 || (stride >= 64 && stride >= 4 * length));
}

// Software prefetches blocks to read only where they are short and a page or more apart. The
// processor follows nearer ones by itself; prefetching those costs up to a third of the time
// (measured).
constexpr uint64_t far_read_stride = 4096;
constexpr uint64_t stream_length = 128;

constexpr uint64_t line = 64;  // bytes of the cache

// The dimension with the least stride, whatever the caches hold; 0: none below dimension 0's.
unsigned find_least_stride(const layout_view &view) {
    if (view.num_blocks != 1 || view.num_dims < 2 || view.list_size > 32) {
        return 0;
    }
    unsigned best = 0;
    uint64_t least = std::min<uint64_t>(magnitude(view.dims[0].stride), 64);
    for (unsigned d = 1; d < view.num_dims; ++d) {
        uint64_t stride = magnitude(view.dims[d].stride);
        if (view.dims[d].count > 1 && stride != 0 && stride < least) {
            best = d;
            least = stride;
        }
    }
    return best;
}

// Whether a line for each block of dimension 0 stays in half of a first-level cache (64 sets, 12
// ways) until the next index of dimension 1 uses it again. Then type-map order is best.
bool lines_stay_near(const layout_dim &dim) {
    const uint64_t stride = std::max<uint64_t>(magnitude(dim.stride), 64);
    const uint64_t power = std::max<uint64_t>(stride & (0 - stride), 64);
    const uint64_t sets = std::max<uint64_t>(4096 / power, 1);
    return dim.count <= sets * 6;
}

// Whether the next row mostly reads the lines of this one, which the second-level cache still has.
bool shares_lines(const layout_view &view) {
    return view.num_dims > 1 && magnitude(view.dims[1].stride) < 64;
}

bool stays_in_cache(const layout_view &view, unsigned dense) {
    return dense == 1 && lines_stay_near(view.dims[0]);
}

}  // namespace

unsigned find_dense_dimension(const layout_view &view) noexcept {
    const unsigned dense = find_least_stride(view);
    return stays_in_cache(view, dense) ? 0 : dense;
}

fetch choose_fetch(const layout_view &view, direction dir) noexcept {
    if (stays_in_cache(view, find_least_stride(view))) {
        return fetch::none;
    }
    const uint64_t stride = magnitude(view.dims[0].stride);
    if (dir == direction::unpack) {
        return is_far_to_write(stride, view.list_size) ? fetch::target : fetch::none;
    }
    const bool far = stride >= far_read_stride && view.list_size < stream_length;
    return far && !shares_lines(view) ? fetch::source : fetch::none;
}

uint64_t find_unit(const layout_view &view, uint64_t most) noexcept {
    uint64_t unit = view.list_size;
    const unsigned dense = find_dense_dimension(view);
    if (dense != 0) {
        for (unsigned d = 0; d < dense; ++d) {
            unit *= view.dims[d].count;
        }
        const uint64_t stride = std::max<uint64_t>(magnitude(view.dims[dense].stride), 1);
        const uint64_t slices = std::max(least_slices, line / stride);
        return unit <= view.packed_size / slices ? unit * slices : view.packed_size;
    }
    if (view.num_dims == 0 || unit > most) {
        return line;
    }
    for (unsigned d = 0; d < view.num_dims && view.dims[d].count <= most / unit; ++d) {
        unit *= view.dims[d].count;
    }
    return unit;
}

}  // namespace cuda_nc::exec
