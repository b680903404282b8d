#include "ucs/exec/host/disjoint.hpp"

#include "ucs/base/bits.hpp"
#include "ucs/layout/list_proof.hpp"

namespace cuda_nc::exec {
namespace {

struct interval {
    int64_t begin;
    uint64_t length;
};

uint64_t long_list_span(const layout_view &view) noexcept {
    if (view.proof == nullptr) {
        return 0;
    }
    uint64_t span = view.proof->disjoint_span.load(std::memory_order_relaxed);
    if (span == list_proof::unknown) {
        span = find_disjoint_span(view);
        view.proof->disjoint_span.store(span, std::memory_order_relaxed);
    }
    return span;
}

// Bytes from the first to the last byte of the list, or 0 where its blocks overlap.
uint64_t disjoint_list_span(const layout_view &view) noexcept {
    if (view.num_blocks == 1) {
        return view.list_size;
    }
    if (view.num_blocks > max_short_list) {
        return long_list_span(view);
    }
    interval sorted[max_short_list];
    unsigned count = 0;
    for (uint64_t b = 0; b < view.num_blocks; ++b) {
        interval one{view.block_displacement(b), view.block_packed(b + 1) - view.block_packed(b)};
        unsigned place = count++;
        for (; place != 0 && sorted[place - 1].begin > one.begin; --place) {
            sorted[place] = sorted[place - 1];
        }
        sorted[place] = one;
    }
    auto distance = [&](unsigned b) {
        return static_cast<uint64_t>(sorted[b].begin) - static_cast<uint64_t>(sorted[0].begin);
    };
    for (unsigned b = 1; b < count; ++b) {
        if (distance(b) - distance(b - 1) < sorted[b - 1].length) {
            return 0;
        }
    }
    return distance(count - 1) + sorted[count - 1].length;
}

}  // namespace

bool blocks_are_disjoint(const layout_view &view, unsigned num_dims) noexcept {
    uint64_t span = disjoint_list_span(view);
    if (span == 0) {
        return false;
    }
    struct step {
        uint64_t stride, count;
    } steps[max_dims];  // by growing stride
    unsigned count = 0;
    for (unsigned d = 0; d < num_dims; ++d) {
        if (view.dims[d].count > 1) {
            const step one{magnitude(view.dims[d].stride), view.dims[d].count};
            unsigned place = count++;
            for (; place != 0 && steps[place - 1].stride > one.stride; --place) {
                steps[place] = steps[place - 1];
            }
            steps[place] = one;
        }
    }
    for (unsigned d = 0; d < count; ++d) {
        uint64_t reach;
        if (steps[d].stride < span ||
            __builtin_mul_overflow(steps[d].stride, steps[d].count - 1, &reach) ||
            __builtin_add_overflow(span, reach, &span)) {
            return false;
        }
    }
    return true;
}

}  // namespace cuda_nc::exec
