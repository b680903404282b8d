// Layout views filled in by hand, with the naive type map that they stand for: the executor is
// tested without the builder.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ucs/layout/layout_view.hpp"
#include "ucs/layout/list_proof.hpp"

namespace cuda_nc::exec::test {

struct piece {
    int64_t displacement;
    uint64_t length;
};

class hand_made_layout {
  public:
    hand_made_layout(std::vector<piece> list, std::vector<layout_dim> dims, bool wide = false)
        : list_(std::move(list)) {
        view_.num_blocks = list_.size();
        view_.num_dims = static_cast<uint8_t>(dims.size());
        view_.first_displacement = list_[0].displacement;
        view_.block_length = list_[0].length;
        for (const piece &one : list_) {
            view_.list_size += one.length;
            view_.longest_block = std::max(view_.longest_block, one.length);
            if (one.length != list_[0].length) {
                view_.block_length = 0;
            }
        }
        uint64_t passes = 1;
        for (size_t d = 0; d < dims.size(); ++d) {
            view_.dims[d] = dims[d];
            view_.by_dim[d] = fast_divide(dims[d].count);
            passes *= dims[d].count;
        }
        view_.packed_size = view_.list_size * passes;
        view_.by_list = fast_divide(view_.list_size);
        if (view_.block_length != 0) {
            view_.by_block = fast_divide(view_.block_length);
        }
        if (list_.size() > 1) {
            view_.kind = list_.size() <= max_short_list && !dims.empty() ? shape::repeated
                                                                         : shape::irregular;
            make_tables(wide);
            view_.proof = &proof_;
        } else {
            view_.kind = dims.empty() ? shape::contiguous : shape::strided;
        }
        view_.align_log2 = align_log2();
        map_.reserve(passes * list_.size());
        enumerate(static_cast<int>(dims.size()) - 1, 0);
        for (const piece &one : map_) {
            lower_ = std::min(lower_, one.displacement);
            upper_ = std::max(upper_, one.displacement + static_cast<int64_t>(one.length));
        }
    }

    hand_made_layout(const hand_made_layout &) = delete;
    hand_made_layout &operator=(const hand_made_layout &) = delete;

    const layout_view &view() const { return view_; }

    // Every block in type-map order.
    const std::vector<piece> &map() const { return map_; }

    // Bounds of the bytes that the blocks cover.
    int64_t lower() const { return lower_; }
    int64_t upper() const { return upper_; }

  private:
    uint8_t align_log2() const {
        uint64_t all = 16;
        for (const piece &one : list_) {
            all |= static_cast<uint64_t>(one.displacement) | one.length;
        }
        for (unsigned d = 0; d < view_.num_dims; ++d) {
            all |= static_cast<uint64_t>(view_.dims[d].stride);
        }
        return static_cast<uint8_t>(__builtin_ctzll(all));
    }

    void enumerate(int d, int64_t displacement) {
        if (d < 0) {
            for (const piece &one : list_) {
                map_.push_back({one.displacement + displacement, one.length});
            }
            return;
        }
        for (uint64_t i = 0; i < view_.dims[d].count; ++i) {
            enumerate(d - 1, displacement + static_cast<int64_t>(i) * view_.dims[d].stride);
        }
    }

    void make_tables(bool wide) {
        const bool varies = view_.block_length == 0;
        uint64_t packed = 0;
        if (wide) {
            for (const piece &one : list_) {
                wide_displacement_.push_back(one.displacement);
                wide_packed_.push_back(packed);
                packed += one.length;
            }
            wide_packed_.push_back(packed);
            view_.tables.wide_displacement = wide_displacement_.data();
            view_.tables.wide_packed = varies ? wide_packed_.data() : nullptr;
            return;
        }
        for (size_t first = 0; first < list_.size(); first += frame_blocks) {
            const size_t end = std::min<size_t>(list_.size(), first + frame_blocks);
            int64_t least = INT64_MAX;
            for (size_t b = first; b < end; ++b) {
                least = std::min(least, list_[b].displacement);
            }
            frame_displacement_.push_back(least);
            frame_packed_.push_back(packed);
            for (size_t b = first; b < end; ++b) {
                displacement_.push_back(static_cast<uint32_t>(list_[b].displacement - least));
                packed_.push_back(static_cast<uint32_t>(packed - frame_packed_.back()));
                packed += list_[b].length;
            }
        }
        frame_packed_.push_back(packed);
        uint32_t all = 0;
        for (uint32_t offset : displacement_) {
            all |= offset;
        }
        while (view_.granule_log2 < 4 && (all >> view_.granule_log2) % 2 == 0) {
            ++view_.granule_log2;
        }
        for (uint32_t &offset : displacement_) {
            offset >>= view_.granule_log2;
        }
        view_.tables.frame_displacement = frame_displacement_.data();
        view_.tables.displacement = displacement_.data();
        if (varies) {
            view_.tables.frame_packed = frame_packed_.data();
            view_.tables.packed = packed_.data();
        }
    }

    std::vector<piece> list_, map_;
    layout_view view_;
    list_proof proof_;
    int64_t lower_ = INT64_MAX, upper_ = INT64_MIN;
    std::vector<int64_t> frame_displacement_, wide_displacement_;
    std::vector<uint64_t> frame_packed_, wide_packed_;
    std::vector<uint32_t> displacement_, packed_;
};

}  // namespace cuda_nc::exec::test
