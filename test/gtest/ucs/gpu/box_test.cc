// Rows that a copy engine moves: found where both layouts are such, against bytes counted one by
// one.
#include "ucs/gpu/box.hpp"

#include <gtest/gtest.h>

#include <random>

#include "ucs/exec/host/hand_made_layout.hpp"

namespace cuda_nc::gpu {
namespace {

using exec::test::hand_made_layout;
using exec::test::piece;

// Displacement of every packed byte, up to `length`.
std::vector<int64_t> bytes_of(const hand_made_layout &what, uint64_t length) {
    std::vector<int64_t> all;
    for (const piece &one : what.map()) {
        for (uint64_t i = 0; i < one.length && all.size() < length; ++i) {
            all.push_back(one.displacement + static_cast<int64_t>(i));
        }
    }
    return all;
}

std::vector<int64_t> bytes_of(const box &rows, const box::side &side) {
    std::vector<int64_t> all;
    for (uint64_t s = 0; s < rows.slices; ++s) {
        for (uint64_t r = 0; r < rows.rows; ++r) {
            for (uint64_t i = 0; i < rows.width; ++i) {
                const uint64_t row = s * side.rows_of_slice + r;
                all.push_back(side.displacement + static_cast<int64_t>(row * side.pitch + i));
            }
        }
    }
    return all;
}

void expect_right(const hand_made_layout &from, const hand_made_layout &to, uint64_t length,
                  const box &rows) {
    EXPECT_EQ(rows.width * rows.all_rows(), length);
    EXPECT_EQ(bytes_of(rows, rows.source), bytes_of(from, length));
    EXPECT_EQ(bytes_of(rows, rows.target), bytes_of(to, length));
    for (const box::side &side : {rows.source, rows.target}) {
        EXPECT_GE(side.pitch, rows.width);
        EXPECT_GE(side.rows_of_slice, rows.rows);
    }
}

hand_made_layout one(uint64_t block, std::vector<layout_dim> dims, int64_t first = 0) {
    return {{{first, block}}, std::move(dims)};
}

void expect_box(const hand_made_layout &from, const hand_made_layout &to, uint64_t width,
                uint64_t rows, uint64_t slices) {
    box found;
    const uint64_t length = std::min(from.view().packed_size, to.view().packed_size);
    ASSERT_TRUE(find_box(from.view(), to.view(), length, &found));
    EXPECT_EQ(found.width, width);
    EXPECT_EQ(found.rows, rows);
    EXPECT_EQ(found.slices, slices);
    expect_right(from, to, length, found);
}

void expect_none(const hand_made_layout &from, const hand_made_layout &to, uint64_t length) {
    box found;
    EXPECT_FALSE(find_box(from.view(), to.view(), length, &found));
}

TEST(box, vectors_and_parts_of_arrays_are_rows) {
    expect_box(one(64, {}), one(64, {}, 8), 64, 1, 1);
    expect_box(one(64, {{100, 128}}, 16), one(64, {{100, 128}}), 64, 100, 1);
    expect_box(one(64, {{100, 128}}), one(64, {{100, 200}}), 64, 100, 1);
    expect_box(one(24, {{5, 48}, {7, 480}}), one(24, {{5, 24}, {7, 240}}), 24, 5, 7);
    expect_box(one(6400, {}), one(64, {{100, 128}}), 64, 100, 1);
    expect_box(one(64, {{100, 128}}), one(6400, {}), 64, 100, 1);
}

TEST(box, blocks_of_both_sides_may_differ) {
    expect_box(one(64, {{100, 128}}), one(128, {{50, 256}}), 64, 2, 50);
    expect_box(one(4096, {{8, 8192}}), one(64, {{512, 80}}), 64, 64, 8);
    expect_none(one(24, {{10, 48}}), one(16, {{15, 32}}), 240);
}

TEST(box, a_prefix_that_ends_between_rows_is_rows) {
    const hand_made_layout rows = one(64, {{10, 128}, {10, 2048}});
    box found;
    ASSERT_TRUE(find_box(rows.view(), rows.view(), 64 * 30, &found));
    expect_right(rows, rows, 64 * 30, found);
    ASSERT_TRUE(find_box(rows.view(), one(6400, {}).view(), 64 * 7, &found));
    expect_right(rows, one(6400, {}), 64 * 7, found);
    expect_none(rows, rows, 64 * 35);
    expect_none(rows, rows, 100);
    expect_none(rows, rows, 0);
    expect_none(rows, rows, 6401);
}

TEST(box, what_one_copy_cannot_move_is_none) {
    const hand_made_layout contiguous = one(4096, {});
    expect_none(one(64, {{64, -128}}), contiguous, 4096);
    expect_none(one(64, {{8, 128}, {8, -2048}}), contiguous, 4096);
    expect_none(contiguous, one(64, {{64, 32}}), 4096);             // rows overlap
    expect_none(one(64, {{8, 128}, {8, 512}}), contiguous, 4096);   // slices do
    expect_none(one(64, {{8, 128}, {8, 1100}}), contiguous, 4096);  // not whole pitches apart
    expect_none(one(64, {{4, 128}, {4, 1024}, {4, 8192}}), contiguous, 4096);
    expect_none(one(64, {{64, int64_t{1} << 31}}), contiguous, 4096);
    expect_none({{{0, 64}, {200, 64}}, {{32, 512}}}, contiguous, 4096);
    expect_none(one(1, {{4, 0}}), contiguous, 4);
}

TEST(box, random_layouts_are_taken_apart_rightly) {
    std::mt19937 random(20261122);
    auto number = [&random](uint64_t least, uint64_t most) {
        return std::uniform_int_distribution<uint64_t>(least, most)(random);
    };
    int found = 0;
    for (int round = 0; round < 4000; ++round) {
        const uint64_t block = number(1, 20);
        std::vector<uint64_t> counts;
        for (uint64_t d = number(0, 4); d > 0; --d) {
            counts.push_back(number(1, 6));
        }
        auto side = [&] {
            uint64_t length = block, span;
            size_t d = 0;
            for (size_t whole = number(0, counts.size()); d < whole; ++d) {
                length *= counts[d];
            }
            span = length;
            std::vector<layout_dim> dims;
            for (; d < counts.size(); ++d) {
                const uint64_t stride = number(0, 3) == 0 ? span : span * number(1, 3);
                dims.push_back({counts[d], static_cast<int64_t>(stride + number(0, 3) / 3)});
                span = (stride + 1) * counts[d];
            }
            return one(length, dims, static_cast<int64_t>(number(0, 100)) - 50);
        };
        const hand_made_layout from = side(), to = side();
        uint64_t length = from.view().packed_size;
        length = number(0, 3) == 0 ? number(1, length) : length;
        box rows;
        if (find_box(from.view(), to.view(), length, &rows)) {
            ++found;
            expect_right(from, to, length, rows);
        }
    }
    EXPECT_GT(found, 1000);
}

}  // namespace
}  // namespace cuda_nc::gpu
