// A random layout whose blocks do not overlap, buffers at random alignments, a random fragment, and
// the naive byte map that says what must become of them.
#pragma once

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "../host/hand_made_layout.hpp"
#include "ucs/gpu/kernel_rules.hpp"
#include "ucs/gpu/device.hpp"

namespace cuda_nc::exec::test {

using gpu::all_kernel_rules;
using gpu::kernel_rule;
using gpu::kernel_rules;
using gpu::usual_rules;

struct random_case {
    std::unique_ptr<hand_made_layout> layout;
    layout_view view;                  // the layout's, with alignment and perhaps a unit index
    std::vector<uint32_t> unit_block;  // owns the index
    gpu::direction dir = gpu::direction::pack;
    uint64_t packed_offset = 0, length = 0;
    uint32_t laid_out_skew = 0, packed_skew = 0;  // misalignment of the two buffers, 0..15
    unsigned max_sms = 0, num_sms = 1;

    // Displacement of every packed byte.
    std::vector<int64_t> bytes() const {
        std::vector<int64_t> map;
        map.reserve(view.packed_size);
        for (const piece &one : layout->map()) {
            for (uint64_t i = 0; i < one.length; ++i) {
                map.push_back(one.displacement + static_cast<int64_t>(i));
            }
        }
        return map;
    }
    // All but the addresses.
    gpu::transfer transfer() const {
        gpu::transfer work;
        work.dir = dir;
        work.layout = view;
        work.packed_offset = packed_offset;
        work.length = length;
        work.max_sms = max_sms;
        return work;
    }
    size_t span() const { return static_cast<size_t>(layout->upper() - layout->lower()); }
};

class case_maker {
  public:
    explicit case_maker(uint64_t seed) : random_(seed) {}

    uint64_t below(uint64_t n) { return random_() % n; }
    uint64_t between(uint64_t low, uint64_t high) { return low + below(high - low + 1); }

    // Every rule somewhere in its range, or at one of its ends.
    kernel_rules make_rules() {
        kernel_rules rules;
        for (const kernel_rule &one : all_kernel_rules) {
            const uint64_t steps = (one.most - one.least) / one.step, ends[] = {0, steps};
            do {
                const uint64_t step = below(3) == 0   ? ends[below(2)]
                                      : below(2) == 0 ? below(steps + 1)
                                                      : below(std::min<uint64_t>(steps, 64) + 1);
                rules.*one.value = static_cast<uint32_t>(one.least + step * one.step);
            } while (!one.allows(rules.*one.value));
        }
        return rules;
    }

    random_case make() {
        const uint64_t grain = uint64_t{1} << below(5);
        std::vector<piece> list;
        std::vector<layout_dim> dims;
        if (below(6) == 0) {
            list = {{0, grain}};
            dims = transposed_dims(grain);
        } else {
            list = below(2) == 0 ? one_block(grain) : many_blocks(grain);
            dims = make_dims(list, grain, list.size());
        }
        return make(list, dims, grain);
    }

    // A list of long blocks of different lengths.
    random_case make_long() {
        const uint64_t grain = below(2) == 0 ? 1 : uint64_t{1} << below(5);
        const uint64_t n = between(2, 150), longest = between(1200, 9000) / grain;
        std::vector<piece> list;
        uint64_t at = 0;
        for (uint64_t b = 0; b < n; ++b) {
            uint64_t length = grain * (below(8) == 0 ? between(1, 9) : between(1, longest));
            list.push_back({static_cast<int64_t>(at), length});
            at += length + grain * between(1, 20);
        }
        if (below(2) == 0) {
            std::shuffle(list.begin(), list.end(), random_);
        }
        return make(list, {}, grain);
    }

    // Blocks of different lengths, perhaps repeated.
    random_case make_short_list(bool repeated = false) {
        const uint64_t grain = uint64_t{1} << below(5);
        std::vector<layout_dim> dims;
        const bool repeats = repeated || below(3) == 0;
        const uint64_t n = repeats ? between(2, 20) : between(2, below(4) == 0 ? 2500 : 80);
        const uint64_t longest = between(2, n > 200 ? 4 : below(2) == 0 ? 12 : 70);
        std::vector<piece> list;
        uint64_t at = 0;
        for (uint64_t b = 0; b < n; ++b) {
            const uint64_t length = grain * between(1, longest);
            list.push_back({static_cast<int64_t>(at), length});
            at += length + grain * between(0, 5);
        }
        list.back().length += grain;  // not all alike
        at += grain;
        std::shuffle(list.begin(), list.end(), random_);
        if (repeats) {
            const auto stride = static_cast<int64_t>(at + grain * below(9));
            dims.push_back({between(2, 9), below(3) == 0 ? -stride : stride});
            if (below(2) == 0) {
                dims.push_back({between(2, 4), 10 * stride});
            }
        }
        return make(list, dims, grain);
    }

    // Rows of a triangle or a trapezoid that gets wider or narrower, from its first row or its
    // last.
    random_case make_progression() {
        const uint64_t grain = below(4) == 0 ? 1 : uint64_t{1} << below(5);
        const uint64_t n = below(4) == 0 ? between(2, 150) : between(2, 30);
        const uint64_t step = grain * between(1, n > 30 ? 2 : 20);
        const uint64_t shortest = grain * (below(2) == 0 ? between(1, 4) : between(1, 100));
        const uint64_t gap = grain * between(0, 20);
        const bool narrows = below(2) == 0, backwards = below(3) == 0;
        auto stride = static_cast<int64_t>(shortest + (n - 1) * step + gap);
        stride = backwards ? -stride : stride;
        std::vector<piece> list;
        for (uint64_t b = 0; b < n; ++b) {
            list.push_back(
                {static_cast<int64_t>(b) * stride, shortest + step * (narrows ? n - 1 - b : b)});
        }
        std::vector<layout_dim> dims;
        if (below(3) == 0) {  // fragments may lie in one repetition
            dims.push_back({between(2, 3), static_cast<int64_t>(n) * stride});
        }
        random_case c = make(list, dims, grain);
        c.view.progression.first_length = static_cast<uint32_t>(list[0].length);
        c.view.progression.length_step = static_cast<int32_t>(narrows ? -step : step);
        c.view.progression.stride = stride;
        return c;
    }

    // One block, repeated over up to two dims; all of it aligned to 4 bytes or more.
    random_case make_rows() {
        const uint64_t grain = uint64_t{4} << below(3);
        const uint64_t length = grain * between(1, below(2) == 0 ? 4 : 600);
        std::vector<layout_dim> dims;
        auto span = static_cast<int64_t>(length);
        for (uint64_t d = below(3); d > 0; --d) {
            const int64_t stride = span + static_cast<int64_t>(grain * between(1, 9));
            const uint64_t count = between(2, 40);
            dims.push_back({count, below(4) == 0 ? -stride : stride});
            span = stride * static_cast<int64_t>(count);
        }
        random_case c = make({{0, length}}, dims, grain);
        c.laid_out_skew = c.packed_skew = 0;
        return c;
    }

    random_case make_contiguous() {
        const uint64_t grain = uint64_t{1} << below(5);
        random_case c = make({{static_cast<int64_t>(grain * below(9)), between(1, 100000)}}, {}, 1);
        c.laid_out_skew = c.packed_skew = 0;
        return c;
    }

  private:
    random_case make(const std::vector<piece> &list, const std::vector<layout_dim> &dims,
                     uint64_t grain) {
        random_case c;
        c.layout = std::make_unique<hand_made_layout>(list, dims, below(8) == 0);
        c.view = c.layout->view();
        if (c.view.num_blocks > 1 && c.view.block_length == 0 && below(4) != 0) {
            index_units(&c);
        }
        c.dir = static_cast<gpu::direction>(below(3));
        choose_fragment(&c);
        // Aligned as the layout is, or at random.
        c.laid_out_skew =
            static_cast<uint32_t>(below(2) == 0 ? grain * below(16 / grain) : below(16));
        c.packed_skew = static_cast<uint32_t>(
            below(2) == 0 ? (c.packed_offset + grain * below(16 / grain)) % 16 : below(16));
        c.max_sms = below(4) == 0 ? static_cast<unsigned>(between(1, 4)) : 0;
        c.num_sms = static_cast<unsigned>(between(1, 8));
        return c;
    }

    std::vector<piece> one_block(uint64_t grain) {
        uint64_t words = below(3) == 0 ? between(1, 200) : between(1, 4);
        return {{static_cast<int64_t>(grain * below(40)) - 100 * static_cast<int64_t>(grain),
                 grain * words}};
    }

    std::vector<piece> many_blocks(uint64_t grain) {
        uint64_t n = below(3) == 0 ? between(2, 3000) : between(2, 60);
        const uint64_t longest = between(1, n > 500 ? 8 : 60);
        const bool uniform = below(2) == 0;
        std::vector<piece> list;
        uint64_t at = 0;
        for (uint64_t b = 0; b < n; ++b) {
            uint64_t length = grain * (uniform ? longest : between(1, longest));
            list.push_back({static_cast<int64_t>(at), length});
            at += length + grain * between(1, 5);
        }
        if (below(2) == 0) {
            std::shuffle(list.begin(), list.end(), random_);
        }
        return list;
    }

    // Dims that keep all blocks apart: each stride exceeds what the dims before it span. Then their
    // order is mixed (transposes) and some run backwards.
    std::vector<layout_dim> make_dims(const std::vector<piece> &list, uint64_t grain,
                                      uint64_t blocks) {
        int64_t low = INT64_MAX, high = INT64_MIN;
        uint64_t bytes = 0;
        for (const piece &one : list) {
            low = std::min(low, one.displacement);
            high = std::max(high, one.displacement + static_cast<int64_t>(one.length));
            bytes += one.length;
        }
        int64_t extent = high - low;
        std::vector<layout_dim> dims;
        const uint64_t wanted = below(6);
        for (uint64_t d = 0; d < wanted && bytes < 60000 && blocks < 20000; ++d) {
            layout_dim dim;
            dim.count = between(2, below(3) == 0 ? 150 : 9);
            while (dim.count > 2 && bytes * dim.count > 120000) {
                dim.count /= 2;
            }
            dim.stride =
                extent + (below(2) == 0 ? 0 : static_cast<int64_t>(grain * between(1, 40)));
            extent = dim.stride * static_cast<int64_t>(dim.count);
            if (extent > (8 << 20)) {
                break;
            }
            bytes *= dim.count;
            blocks *= dim.count;
            if (below(5) == 0) {
                dim.stride = -dim.stride;
            }
            dims.push_back(dim);
        }
        if (below(2) == 0) {
            std::shuffle(dims.begin(), dims.end(), random_);
        }
        return dims;
    }

    // Elements of `grain` bytes in an array, in another order than that of their addresses.
    std::vector<layout_dim> transposed_dims(uint64_t grain) {
        std::vector<layout_dim> dims;
        auto stride = static_cast<int64_t>(grain * between(1, 2));
        const uint64_t wanted = between(2, 4);
        for (uint64_t d = 0; d < wanted; ++d) {
            uint64_t count = wanted == 2 ? between(3, 170) : between(2, 33);
            dims.push_back({count, below(8) == 0 ? -stride : stride});
            stride *= static_cast<int64_t>(count + below(3));
        }
        std::shuffle(dims.begin(), dims.end(), random_);
        return dims;
    }

    void index_units(random_case *c) {
        c->view.tables.unit_log2 = static_cast<uint32_t>(between(4, 12));
        for (uint64_t offset = 0;; offset += uint64_t{1} << c->view.tables.unit_log2) {
            if (offset >= c->view.list_size) {
                c->unit_block.push_back(static_cast<uint32_t>(c->view.num_blocks - 1));
                break;
            }
            uint32_t b = 0;
            for (uint64_t end = 0; (end += c->layout->map()[b].length) <= offset;) {
                ++b;
            }
            c->unit_block.push_back(b);
        }
        c->view.tables.unit_block = c->unit_block.data();
    }

    void choose_fragment(random_case *c) {
        const uint64_t total = c->view.packed_size;
        switch (below(4)) {
            case 0:
                c->length = total;
                break;
            case 1:
                c->packed_offset = below(total);
                c->length = std::min(total - c->packed_offset, between(1, 64));
                break;
            default:
                c->packed_offset = below(total);
                c->length = between(1, total - c->packed_offset);
        }
    }

    std::mt19937_64 random_;
};

}  // namespace cuda_nc::exec::test
