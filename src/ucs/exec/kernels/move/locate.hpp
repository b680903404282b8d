// Finds where an offset of a part lies. There is a locator for each kind of layout, with
//     seek(a, p, cursor *)  any offset p of part `a`
//     next(a, p, cursor *)  the block after the cursor's, whose first offset is p
#pragma once

#include <cmath>
#include <cstdint>

#include "ucs/exec/kernels/plan/part.hpp"
#include "ucs/exec/kernels/move/word.hpp"

namespace cuda_nc::exec {

struct cursor {
    int64_t displacement;  // of offset p, from the part's base
    uint32_t remaining;    // bytes up to the end of the block (at most 2^32 - 1)
    bool at_start;         // p is the first of its block
    uint32_t block;        // lists: block of the list
    uint32_t pass;         // lists with dims: repetition of the list
};

// The displacement of repetition `pass`; Dims < 0: their number is known at run time only.
template <int Dims>
CUDA_NC_KERNEL int64_t pass_displacement(const part &a, uint32_t pass) {
    int64_t sum = 0;
    const int last = (Dims < 0 ? static_cast<int>(a.num_dims) : Dims) - 1;
    for (int d = 0; d < last; ++d) {
        uint32_t q = a.dims[d].by_count.quotient(pass);
        sum += static_cast<int64_t>(a.dims[d].by_count.remainder(pass, q)) * a.dims[d].stride;
        pass = q;
    }
    if (last >= 0) {
        sum += static_cast<int64_t>(pass) * a.dims[last].stride;
    }
    return sum;
}

// One block, repeated over dims.
template <int Dims>
struct strided_locator {
    CUDA_NC_KERNEL static void seek(const part &a, uint32_t p, cursor *c) {
        if (Dims == 0) {
            c->displacement = p;
            c->remaining = 0xffffffffu;
            c->at_start = p == 0;
            return;
        }
        uint32_t pass = a.by_block.quotient(p);
        uint32_t in_block = a.by_block.remainder(p, pass);
        c->displacement = pass_displacement<Dims>(a, pass) + in_block;
        c->remaining = a.block_length - in_block;
        c->at_start = in_block == 0;
    }
    CUDA_NC_KERNEL static void next(const part &a, uint32_t p, cursor *c) { seek(a, p, c); }
};

CUDA_NC_KERNEL int64_t listed_displacement(const part &a, uint32_t block) {
    if (a.tables.wide_displacement != nullptr) {
        return a.tables.wide_displacement[block];
    }
    return a.tables.frame_displacement[block >> frame_blocks_log2] +
           static_cast<int64_t>(uint64_t{a.tables.displacement[block]} << a.granule_log2);
}

// A list of blocks of one length.
struct uniform_locator {
    CUDA_NC_KERNEL static void seek(const part &a, uint32_t p, cursor *c) {
        int64_t displacement = 0;
        c->pass = 0;
        if (a.num_dims != 0) {
            c->pass = a.by_list.quotient(p);
            p = a.by_list.remainder(p, c->pass);
            displacement = pass_displacement<-1>(a, c->pass);
        }
        uint32_t block = a.by_block.quotient(p);
        uint32_t in_block = a.by_block.remainder(p, block);
        c->block = a.block_first + block;
        c->displacement = displacement + listed_displacement(a, c->block) + in_block;
        c->remaining = a.block_length - in_block;
        c->at_start = in_block == 0;
    }
    CUDA_NC_KERNEL static void next(const part &a, uint32_t p, cursor *c) { seek(a, p, c); }
};

// Blocks of a progression (see block_progression): without tables and without a search.
struct progression_locator {
    CUDA_NC_KERNEL static void seek(const part &a, uint32_t p, cursor *c) {
        const uint64_t offset = a.list_first + p;
        uint32_t block = guess(a.progression, offset);
        uint64_t begin = packed_start(a.progression, block);
        while (begin > offset) {
            --block;
            begin -= length_of(a.progression, block);
        }
        uint32_t length = length_of(a.progression, block);
        while (offset - begin >= length) {
            ++block;
            begin += length;
            length = length_of(a.progression, block);
        }
        const auto in_block = static_cast<uint32_t>(offset - begin);
        c->block = block;
        c->pass = 0;
        c->displacement = a.first_displacement + block * a.progression.stride + in_block;
        c->remaining = length - in_block;
        c->at_start = in_block == 0;
    }
    CUDA_NC_KERNEL static void next(const part &a, uint32_t p, cursor *c) { seek(a, p, c); }

  private:
    CUDA_NC_KERNEL static uint32_t length_of(const block_progression &q, uint32_t block) {
        return q.first_length + block * static_cast<uint32_t>(q.length_step);
    }
    CUDA_NC_KERNEL static uint64_t packed_start(const block_progression &q, uint32_t block) {
        const uint64_t pairs = uint64_t{block} * (uint64_t{block} - 1) / 2;
        return uint64_t{block} * q.first_length +
               pairs * static_cast<uint64_t>(int64_t{q.length_step});
    }
    // The block of `offset` or one beside it: the positive x of
    //     x * first_length + x * (x - 1) / 2 * length_step = offset.
    CUDA_NC_KERNEL static uint32_t guess(const block_progression &q, uint64_t offset) {
        const int64_t step = q.length_step;
        const int64_t b = 2 * int64_t{q.first_length} - step;
        const int64_t radicand = b * b + 8 * step * static_cast<int64_t>(offset);
        const float x = (sqrtf(static_cast<float>(radicand)) - static_cast<float>(b)) /
                        static_cast<float>(2 * step);
        return x > 0 ? static_cast<uint32_t>(x) : 0;
    }
};

struct listed_block {
    uint32_t begin;  // its first offset, within the part
    int64_t delta;   // offset p of it lies at displacement delta + p
};

// A list of blocks of different lengths: binary search, within one unit where there is an index.
// Entries of frames other than the answer's are never read (see layout_view::find_block).
struct varying_locator {
    CUDA_NC_KERNEL static void seek(const part &a, uint32_t p, cursor *c) {
        uint64_t offset = a.list_first + p;
        c->pass = 0;
        if (a.num_dims != 0) {
            c->pass = a.by_list.quotient(p);
            offset = a.by_list.remainder(p, c->pass);
        }
        c->block = find(a, offset);
        fill(a, offset, c);
    }

    CUDA_NC_KERNEL static void next(const part &a, uint32_t p, cursor *c) {
        uint64_t offset = a.list_first + p;
        if (++c->block == a.num_blocks) {
            c->block = 0;
            ++c->pass;
        }
        if (a.num_dims != 0) {
            offset = p - c->pass * a.by_list.divisor;
        }
        fill(a, offset, c);
    }

    // The block and the repetition of the list that hold offset p.
    CUDA_NC_KERNEL static void find_block(const part &a, uint32_t p, uint32_t *block_p,
                                          uint32_t *pass_p) {
        uint64_t offset = a.list_first + p;
        *pass_p = 0;
        if (a.num_dims != 0) {
            *pass_p = a.by_list.quotient(p);
            offset = a.by_list.remainder(p, *pass_p);
        }
        *block_p = find(a, offset);
    }

    // The same, or a block fewer than `most` before it, where that saves dependent reads.
    CUDA_NC_KERNEL static void find_block_near(const part &a, uint32_t p, uint32_t most,
                                               uint32_t *block_p, uint32_t *pass_p) {
        if (a.tables.unit_block != nullptr && a.num_dims == 0) {
            const uint32_t *unit = a.tables.unit_block + ((a.list_first + p) >> a.tables.unit_log2);
            if (unit[1] - unit[0] < most) {
                *block_p = unit[0];
                *pass_p = 0;
                return;
            }
        }
        find_block(a, p, block_p, pass_p);
    }

    // Where `N` offsets lie, of a list without dims and without wide tables. The searches go side
    // by side: what each step of all of them reads is waited for once.
    template <int N>
    CUDA_NC_KERNEL static void find_places(const part &a, const uint32_t (&p)[N],
                                           int64_t (&displacement)[N]) {
        uint32_t low[N], high[N], offset[N], begin[N];  // the last two: within the frame
        CUDA_NC_UNROLL
        for (int u = 0; u < N; ++u) {
            bracket_by_unit(a, a.list_first + p[u], &low[u], &high[u]);
        }
        uint32_t frame[N];
        CUDA_NC_UNROLL
        for (int u = 0; u < N; ++u) {
            frame[u] = bracket_by_frame(a, a.list_first + p[u], &low[u], &high[u]);
        }
        bool goes_on = false;
        CUDA_NC_UNROLL
        for (int u = 0; u < N; ++u) {
            offset[u] =
                static_cast<uint32_t>(a.list_first + p[u] - a.tables.frame_packed[frame[u]]);
            begin[u] = packed_in_frame(a, low[u]);
            goes_on |= low[u] < high[u];
        }
        while (goes_on) {
            uint32_t middle[N], entry[N];
            CUDA_NC_UNROLL
            for (int u = 0; u < N; ++u) {  // of a search that has ended it is read for nothing
                middle[u] = low[u] + (high[u] - low[u] + 1) / 2;
                entry[u] = a.tables.packed[middle[u]];
            }
            goes_on = false;
            CUDA_NC_UNROLL
            for (int u = 0; u < N; ++u) {
                if (low[u] < high[u]) {
                    const bool behind = entry[u] > offset[u];
                    high[u] = behind ? middle[u] - 1 : high[u];
                    low[u] = behind ? low[u] : middle[u];
                    begin[u] = behind ? begin[u] : entry[u];
                    goes_on |= low[u] < high[u];
                }
            }
        }
        CUDA_NC_UNROLL
        for (int u = 0; u < N; ++u) {
            displacement[u] = listed_displacement(a, low[u]) + (offset[u] - begin[u]);
        }
    }

    // Any block from the part's first on. A block behind the part's end begins at `part_end`; its
    // table entries may not be uploaded yet and are not read. `known` is a block whose frame is
    // uploaded.
    CUDA_NC_KERNEL static listed_block block_at(const part &a, uint32_t block, uint32_t pass,
                                                uint32_t part_end, uint32_t known = no_block) {
        listed_block b{part_end, 0};
        const bool near = a.num_dims == 0 && block < a.num_blocks &&
                          block >> frame_blocks_log2 == known >> frame_blocks_log2;
        if (near || reached(a, block, part_end)) {
            int64_t begin = signed_begin(a, block, pass);
            b.begin = clip(begin, part_end);
            b.delta = listed_displacement(a, block) - begin;
            if (a.num_dims != 0) {
                b.delta += pass_displacement<-1>(a, pass);
            }
        }
        return b;
    }

    static constexpr uint32_t no_block = 0xffffffffu;

  private:
    CUDA_NC_KERNEL static bool reached(const part &a, uint32_t block, uint32_t part_end) {
        if (a.num_dims != 0) {
            return true;
        }
        return block < a.num_blocks &&
               (a.tables.frame_packed == nullptr ||
                a.tables.frame_packed[block >> frame_blocks_log2] < a.list_first + part_end);
    }

    CUDA_NC_KERNEL static int64_t signed_begin(const part &a, uint32_t block, uint32_t pass) {
        uint64_t begin = packed_start(a, block);
        return a.num_dims != 0 ? static_cast<int64_t>(begin + uint64_t{pass} * a.by_list.divisor)
                               : static_cast<int64_t>(begin) - static_cast<int64_t>(a.list_first);
    }

    CUDA_NC_KERNEL static uint32_t clip(int64_t offset, uint32_t part_end) {
        return offset < 0 ? 0 : offset > part_end ? part_end : static_cast<uint32_t>(offset);
    }

    CUDA_NC_KERNEL static uint64_t packed_start(const part &a, uint32_t block) {
        if (a.tables.wide_packed != nullptr) {
            return a.tables.wide_packed[block];
        }
        if (block == a.num_blocks) {
            return a.list_size;
        }
        return a.tables.frame_packed[block >> frame_blocks_log2] + packed_in_frame(a, block);
    }

    // The frame's first entry is 0 and may not be uploaded yet.
    CUDA_NC_KERNEL static uint32_t packed_in_frame(const part &a, uint32_t block) {
        return (block & (frame_blocks - 1)) == 0 ? 0 : a.tables.packed[block];
    }

    CUDA_NC_KERNEL static void fill(const part &a, uint64_t offset, cursor *c) {
        uint64_t in_block = offset - packed_start(a, c->block);
        uint64_t remaining = packed_start(a, c->block + 1) - offset;
        c->displacement = listed_displacement(a, c->block) + static_cast<int64_t>(in_block);
        if (a.num_dims != 0) {
            c->displacement += pass_displacement<-1>(a, c->pass);
        }
        c->remaining = remaining > 0xffffffffu ? 0xffffffffu : static_cast<uint32_t>(remaining);
        c->at_start = in_block == 0;
    }

    // The last index in [low, high] whose entry is at most `offset`; that of `low` is.
    template <class Entry>
    CUDA_NC_KERNEL static uint32_t search(const Entry *entries, uint32_t low, uint32_t high,
                                          Entry offset) {
        while (low < high) {
            uint32_t middle = low + (high - low + 1) / 2;
            if (entries[middle] <= offset) {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        return low;
    }

    // The blocks [*low_p, *high_p] one of which holds the offset.
    CUDA_NC_KERNEL static void bracket_by_unit(const part &a, uint64_t offset, uint32_t *low_p,
                                               uint32_t *high_p) {
        *low_p = 0;
        *high_p = a.num_blocks - 1;
        if (a.tables.unit_block != nullptr) {
            const uint32_t *unit = a.tables.unit_block + (offset >> a.tables.unit_log2);
            *low_p = unit[0];
            *high_p = unit[1];
        }
    }

    // ... those of them in the offset's frame, whose number it returns.
    CUDA_NC_KERNEL static uint32_t bracket_by_frame(const part &a, uint64_t offset, uint32_t *low_p,
                                                    uint32_t *high_p) {
        const uint32_t frame = search(a.tables.frame_packed, *low_p >> frame_blocks_log2,
                                      *high_p >> frame_blocks_log2, offset);
        const uint32_t frame_low = frame << frame_blocks_log2;
        const uint32_t frame_high = frame_low + static_cast<uint32_t>(frame_blocks) - 1;
        *low_p = *low_p > frame_low ? *low_p : frame_low;
        *high_p = *high_p < frame_high ? *high_p : frame_high;
        return frame;
    }

    CUDA_NC_KERNEL static uint32_t find(const part &a, uint64_t offset) {
        uint32_t low, high;
        bracket_by_unit(a, offset, &low, &high);
        if (a.tables.wide_packed != nullptr) {
            return search(a.tables.wide_packed, low, high, offset);
        }
        const uint32_t frame = bracket_by_frame(a, offset, &low, &high);
        // The search never reads the entry at `low`.
        return search(a.tables.packed, low, high,
                      static_cast<uint32_t>(offset - a.tables.frame_packed[frame]));
    }
};

// Of any part, found out at run time: for pulls between a list and something else. Slower than the
// others.
struct mixed_locator {
    CUDA_NC_KERNEL static void seek(const part &a, uint32_t p, cursor *c) {
        c->block = c->pass = 0;
        if (!a.list) {
            a.num_dims == 0 ? strided_locator<0>::seek(a, p, c)
                            : strided_locator<-1>::seek(a, p, c);
        } else if (a.block_length != 0) {
            uniform_locator::seek(a, p, c);
        } else {
            varying_locator::seek(a, p, c);
        }
    }
    CUDA_NC_KERNEL static void next(const part &a, uint32_t p, cursor *c) {
        if (a.list && a.block_length == 0) {
            varying_locator::next(a, p, c);
        } else {
            seek(a, p, c);
        }
    }
};

}  // namespace cuda_nc::exec
