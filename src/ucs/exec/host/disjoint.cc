#include "ucs/exec/host/disjoint.hpp"

#include <algorithm>
#include <vector>

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

// Repetitions of a list that are added one after the other, by growing stride.
class nested_steps {
  public:
    void add(uint64_t stride, uint64_t count) noexcept {
        if (count <= 1) {
            return;
        }
        unsigned place = count_++;
        for (; place != 0 && steps_[place - 1].stride > stride; --place) {
            steps_[place] = steps_[place - 1];
        }
        steps_[place] = {stride, count};
    }

    // Whether each step is at least as long as all that it repeats; `span`: of the list.
    bool are_disjoint(uint64_t span) const noexcept {
        for (unsigned i = 0; i < count_; ++i) {
            uint64_t reach;
            if (steps_[i].stride < span ||
                __builtin_mul_overflow(steps_[i].stride, steps_[i].count - 1, &reach) ||
                __builtin_add_overflow(span, reach, &span)) {
                return false;
            }
        }
        return true;
    }

  private:
    struct step {
        uint64_t stride, count;
    } steps_[max_dims + 1];
    unsigned count_ = 0;
};

nested_steps steps_of(const layout_view &view, unsigned num_dims) noexcept {
    nested_steps steps;
    for (unsigned d = 0; d < num_dims; ++d) {
        steps.add(magnitude(view.dims[d].stride), view.dims[d].count);
    }
    return steps;
}

}  // namespace

bool blocks_are_disjoint(const layout_view &view, unsigned num_dims) noexcept {
    const uint64_t span = disjoint_list_span(view);
    return span != 0 && steps_of(view, num_dims).are_disjoint(span);
}

overlap find_overlap(const layout &what) {
    constexpr uint64_t most_blocks = uint64_t{1} << 24;
    if (what.packed_size() == 0 || blocks_are_disjoint(what.view(), what.view().num_dims)) {
        return overlap::none;
    }
    if (what.total_blocks() > most_blocks) {
        return overlap::unknown;
    }
    std::vector<block> all;
    all.reserve(what.total_blocks());
    layout_cursor cursor(what, 0);
    for (block one = cursor.next(UINT64_MAX); one.length != 0; one = cursor.next(UINT64_MAX)) {
        all.push_back(one);
    }
    std::sort(all.begin(), all.end(), [](const block &left, const block &right) {
        return left.displacement < right.displacement;
    });
    const auto twice =
        std::adjacent_find(all.begin(), all.end(), [](const block &one, const block &next) {
            return static_cast<uint64_t>(next.displacement) -
                       static_cast<uint64_t>(one.displacement) <
                   one.length;
        });
    return twice == all.end() ? overlap::none : overlap::some;
}

bool may_overlap(const layout &what, const void *one, const void *other) noexcept {
    const auto a = reinterpret_cast<uintptr_t>(one), b = reinterpret_cast<uintptr_t>(other);
    const uint64_t shift = a < b ? b - a : a - b;
    if (shift >=
        static_cast<uint64_t>(what.upper_bound()) - static_cast<uint64_t>(what.lower_bound())) {
        return false;
    }
    const uint64_t span = disjoint_list_span(what.view());
    nested_steps steps = steps_of(what.view(), what.view().num_dims);
    steps.add(shift, 2);
    return shift == 0 || span == 0 || !steps.are_disjoint(span);
}

}  // namespace cuda_nc::exec
