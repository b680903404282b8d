#include "ucs/gpu/box.hpp"

#include <algorithm>
#include <numeric>

namespace cuda_nc::gpu {
namespace {

struct level {
    uint64_t count;
    int64_t stride;
};

// A layout of one block from the inside out: the block, then how often and at which stride it is
// repeated, level by level.
struct levels {
    uint64_t block = 0;
    unsigned number = 0;
    level all[max_dims + 1];

    // False: a list of blocks, or `length` ends within a block or within a row of blocks.
    bool open(const layout_view &view, uint64_t length) noexcept {
        if (view.num_blocks != 1 || view.packed_size < length) {
            return false;
        }
        block = std::min(view.list_size, length);
        uint64_t bytes = block;
        for (unsigned d = 0; d < view.num_dims && bytes < length; ++d) {
            const uint64_t count = std::min(view.dims[d].count, length / bytes);
            if (count != 1) {
                all[number++] = {count, view.dims[d].stride};
            }
            bytes *= count;
        }
        return bytes == length;
    }
    // Cuts each block into blocks of `width` bytes, which divides its length.
    void cut(uint64_t width) noexcept {
        if (block != width) {
            std::copy_backward(all, all + number, all + number + 1);
            all[0] = {block / width, static_cast<int64_t>(width)};
            ++number;
            block = width;
        }
    }
};

struct step {
    uint64_t count;
    int64_t source, target;  // strides
};

constexpr unsigned most_steps = 2;
constexpr uint64_t most_pitch = (uint64_t{1} << 31) - 1;  // bytes; CUDA's limit

// Matches the levels of both sides: a step has one count, and a stride on each side. False: more
// than most_steps are needed, or the counts do not divide each other.
bool join(levels &source, levels &target, step (&steps)[most_steps], unsigned *number_p) noexcept {
    unsigned number = 0;
    level *s = source.all, *t = target.all;
    level *const source_end = s + source.number, *const target_end = t + target.number;
    while (s != source_end && t != target_end) {
        const uint64_t count = std::min(s->count, t->count);
        if (s->count % count != 0 || t->count % count != 0) {
            return false;
        }
        const step one = {count, s->stride, t->stride};
        step *last = number != 0 ? &steps[number - 1] : nullptr;
        const auto repeats = [&](int64_t stride, int64_t of_last) {
            int64_t whole;
            return !__builtin_mul_overflow(of_last, last->count, &whole) && whole == stride;
        };
        if (last != nullptr && repeats(one.source, last->source) &&
            repeats(one.target, last->target)) {
            last->count *= count;
        } else if (number == most_steps) {
            return false;
        } else {
            steps[number++] = one;
        }
        for (level **each : {&s, &t}) {
            level &at = **each;
            at.count /= count;
            if (at.count == 1) {
                ++*each;
            } else if (__builtin_mul_overflow(at.stride, count, &at.stride)) {
                return false;
            }
        }
    }
    *number_p = number;
    return s == source_end && t == target_end;
}

bool place(int64_t row, int64_t slice, const box &of, box::side *side_p) noexcept {
    const uint64_t pitch = of.rows == 1 ? of.width : static_cast<uint64_t>(row);
    if ((of.rows != 1 && row < 0) || pitch < of.width || pitch > most_pitch) {
        return false;
    }
    side_p->pitch = pitch;
    side_p->rows_of_slice = of.rows;
    if (of.slices != 1) {
        if (slice < 0 || static_cast<uint64_t>(slice) % pitch != 0) {
            return false;
        }
        side_p->rows_of_slice = static_cast<uint64_t>(slice) / pitch;
    }
    return side_p->rows_of_slice >= of.rows;
}

}  // namespace

bool find_box(const layout_view &source, const layout_view &target, uint64_t length,
              box *box_p) noexcept {
    levels from, to;
    if (length == 0 || !from.open(source, length) || !to.open(target, length)) {
        return false;
    }
    box made;
    made.width = std::gcd(from.block, to.block);
    from.cut(made.width);
    to.cut(made.width);
    step steps[most_steps];
    unsigned number = 0;
    if (!join(from, to, steps, &number)) {
        return false;
    }
    step row = {1, 0, 0}, slice = {1, 0, 0};
    if (number > 0) {
        row = steps[0];
    }
    if (number > 1) {
        slice = steps[1];
    }
    made.rows = row.count;
    made.slices = slice.count;
    made.source.displacement = source.first_displacement;
    made.target.displacement = target.first_displacement;
    if (!place(row.source, slice.source, made, &made.source) ||
        !place(row.target, slice.target, made, &made.target)) {
        return false;
    }
    *box_p = made;
    return true;
}

}  // namespace cuda_nc::gpu
