// Layouts against a list of every byte's displacement, which shares no code with them.
#include "ucs/layout/layout.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace cuda_nc {
namespace {

using type_map = std::vector<int64_t>;  // displacement of each packed byte

type_map bytes_of(const std::vector<block> &blocks, uint64_t count = 1, int64_t extent = 0) {
    type_map map;
    for (uint64_t i = 0; i < count; ++i) {
        for (const block &b : blocks) {
            for (uint64_t k = 0; k < b.length; ++k) {
                map.push_back(static_cast<int64_t>(i) * extent + b.displacement +
                              static_cast<int64_t>(k));
            }
        }
    }
    return map;
}

type_map bytes_in(const layout &what) {
    type_map map;
    layout_cursor cursor(what, 0);
    for (block b = cursor.next(UINT64_MAX); b.length != 0; b = cursor.next(UINT64_MAX)) {
        for (uint64_t k = 0; k < b.length; ++k) {
            map.push_back(b.displacement + static_cast<int64_t>(k));
        }
    }
    return map;
}

layout_ref build(const std::vector<block> &blocks) {
    layout_builder builder;
    for (const block &b : blocks) {
        builder.append(b.displacement, b.length);
    }
    return builder.finish();
}

void expect_same(const layout &made, const type_map &map, std::mt19937_64 &random) {
    ASSERT_EQ(made.packed_size(), map.size()) << made.describe();
    if (map.empty()) {
        EXPECT_EQ(made.kind(), shape::empty);
        return;
    }
    EXPECT_EQ(made.lower_bound(), *std::min_element(map.begin(), map.end()));
    EXPECT_EQ(made.upper_bound(), *std::max_element(map.begin(), map.end()) + 1);
    for (int i = 0; i < 60; ++i) {
        uint64_t offset = random() % map.size();
        layout_position position = made.view().locate(offset);
        ASSERT_EQ(position.displacement, map[offset]) << made.describe() << " at " << offset;
        ASSERT_GE(position.remaining, 1u);
        ASSERT_EQ(made.view().locate(offset + position.remaining - 1).displacement,
                  map[offset + position.remaining - 1]);
    }
    uint64_t offset = random() % map.size();
    layout_cursor cursor(made, offset);
    while (offset < map.size()) {
        block span = cursor.next(1 + random() % 40);
        ASSERT_NE(span.length, 0u);
        for (uint64_t k = 0; k < span.length; ++k, ++offset) {
            ASSERT_EQ(span.displacement + static_cast<int64_t>(k), map[offset]) << made.describe();
        }
    }
    EXPECT_EQ(cursor.next(1).length, 0u);
}

// Of many characters: random, one pattern in up to three dims, and such with one flaw.
std::vector<block> random_blocks(std::mt19937_64 &random) {
    auto below = [&random](int64_t n) { return static_cast<int64_t>(random() % n); };
    std::vector<block> blocks;
    if (below(5) == 0) {
        for (int64_t i = below(700); i > 0; --i) {
            blocks.push_back({below(20000) - 5000, static_cast<uint64_t>(below(9))});
        }
        return blocks;
    }
    std::vector<block> pattern;
    int64_t end = below(100) - 50;
    for (int64_t i = 1 + below(random() % 2 == 0 ? 1 : 40); i > 0; --i) {
        end += below(20) - 5;
        pattern.push_back({end, static_cast<uint64_t>(below(10))});
        end += static_cast<int64_t>(pattern.back().length);
    }
    int64_t counts[3] = {1 + below(8), 1 + below(5), 1 + below(3)};
    int64_t strides[3] = {below(80) - 20, below(400) - 100, below(2000) - 300};
    for (int64_t k = 0; k < counts[2]; ++k) {
        for (int64_t j = 0; j < counts[1]; ++j) {
            for (int64_t i = 0; i < counts[0]; ++i) {
                for (const block &b : pattern) {
                    blocks.push_back(
                        {b.displacement + i * strides[0] + j * strides[1] + k * strides[2],
                         b.length});
                }
            }
        }
    }
    if (below(3) == 0) {
        blocks[random() % blocks.size()].length += 1;
    }
    return blocks;
}

TEST(layout, covers_exactly_the_bytes_of_random_blocks_and_their_repetitions) {
    uint64_t seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    for (int i = 0; i < 3000 && !testing::Test::HasFailure(); ++i) {
        std::vector<block> blocks = random_blocks(random);
        layout_ref one = build(blocks);
        ASSERT_NE(one, nullptr);
        expect_same(*one, bytes_of(blocks), random);
        uint64_t count = random() % 4;
        int64_t extent = static_cast<int64_t>(random() % 3000) - 1000;
        layout_ref many = one->repeat(count, extent);
        ASSERT_NE(many, nullptr);
        expect_same(*many, bytes_of(blocks, count, extent), random);
        layout_ref again = build(blocks);
        EXPECT_TRUE(again->equal(*one));
        EXPECT_EQ(again->hash(), one->hash());
    }
}

// Blocks of one length, nested in up to four dims that are visited in any order and direction.
TEST(layout, in_memory_order_it_covers_the_same_bytes_once_each) {
    uint64_t seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    int reordered = 0;
    for (int round = 0; round < 3000; ++round) {
        const uint64_t length = 1 + random() % 16;
        int64_t span = static_cast<int64_t>(length);
        std::vector<layout_dim> dims(random() % 5);
        for (layout_dim &dim : dims) {
            dim = {1 + random() % 4, span + static_cast<int64_t>(random() % 3)};
            span = dim.stride * static_cast<int64_t>(dim.count);
            dim.stride *= random() % 4 == 0 ? -1 : 1;
        }
        const bool overlaps = !dims.empty() && random() % 8 == 0;
        if (overlaps) {
            dims[random() % dims.size()].stride /= 3;
        }
        std::shuffle(dims.begin(), dims.end(), random);
        layout_ref one = build({{static_cast<int64_t>(random() % 1000) - 500, length}});
        for (const layout_dim &dim : dims) {
            one = one->repeat(dim.count, dim.stride);
        }
        const layout &ordered = one->in_memory_order();
        reordered += &ordered != one.get() ? 1 : 0;
        ASSERT_EQ(&ordered.in_memory_order(), &ordered);
        type_map bytes = bytes_in(*one), bytes_in_order = bytes_in(ordered);
        if (overlaps) {
            ASSERT_TRUE(&ordered == one.get() || std::is_sorted(bytes.begin(), bytes.end()) ||
                        std::is_sorted(bytes_in_order.begin(), bytes_in_order.end()));
        } else {
            ASSERT_TRUE(std::is_sorted(bytes_in_order.begin(), bytes_in_order.end()))
                << one->describe() << " became " << ordered.describe();
        }
        std::sort(bytes.begin(), bytes.end());
        std::sort(bytes_in_order.begin(), bytes_in_order.end());
        ASSERT_EQ(bytes_in_order, bytes) << one->describe();
        ASSERT_EQ(ordered.packed_size(), one->packed_size());
        ASSERT_EQ(ordered.lower_bound(), one->lower_bound());
        ASSERT_EQ(ordered.upper_bound(), one->upper_bound());
    }
    EXPECT_GT(reordered, 500);
}

TEST(layout, in_memory_order_transposed_and_reversed_matrices_are_plain_memory) {
    layout_ref element = build({{16, 8}});
    layout_ref matrix = element->repeat(100, 8000)->repeat(1000, 8);
    EXPECT_EQ(matrix->kind(), shape::strided);
    EXPECT_EQ(matrix->in_memory_order().kind(), shape::contiguous);
    EXPECT_EQ(matrix->in_memory_order().view().first_displacement, 16);
    layout_ref part = element->repeat(100, 8000)->repeat(500, 8);
    EXPECT_EQ(part->in_memory_order().view().block_length, 4000u);
    layout_ref reversed = element->repeat(1000, -8);
    EXPECT_EQ(reversed->in_memory_order().kind(), shape::contiguous);
    EXPECT_EQ(reversed->in_memory_order().view().first_displacement, 16 - 999 * 8);
}

TEST(layout, in_memory_order_displacements_at_the_edge_of_64_bits_are_right) {
    const int64_t far = int64_t{3} << 61;
    layout_ref one = build({{far, 8}})->repeat(4, -(int64_t{1} << 62));
    ASSERT_NE(one, nullptr);
    EXPECT_EQ(one->in_memory_order().view().first_displacement, -far);
    EXPECT_EQ(one->in_memory_order().upper_bound(), one->upper_bound());
}

TEST(layout, memory_order_is_left_alone_where_blocks_overlap_interleave_or_are_listed) {
    layout_ref element = build({{0, 8}});
    for (const layout_ref &one :
         {element->repeat(5, 16)->repeat(4, 0), element->repeat(5, 16)->repeat(4, 8),
          element->repeat(4, 24)->repeat(3, 16), build({{100, 8}, {0, 8}, {50, 8}}),
          build({{100, 8}, {0, 8}, {50, 8}})->repeat(5, -200),
          build({{4096, 8}})->repeat(2, INT64_MIN), element->repeat(5, 16), element, build({})}) {
        EXPECT_EQ(&one->in_memory_order(), one.get()) << one->describe();
    }
}

TEST(layout, million_block_vector_needs_no_tables) {
    layout_builder builder;
    for (int64_t i = 0; i < 1000000; ++i) {
        builder.append(i * 16, 8);
    }
    layout_ref vector = builder.finish();
    EXPECT_EQ(vector->kind(), shape::strided);
    EXPECT_EQ(vector->table_bytes(), 0u);
    EXPECT_EQ(vector->total_blocks(), 1000000u);
    EXPECT_EQ(vector->view().align_log2, 3);
}

TEST(layout, transposed_matrix_keeps_type_map_order) {
    layout_builder builder;
    for (int64_t column = 0; column < 30; ++column) {
        for (int64_t row = 0; row < 20; ++row) {
            builder.append((row * 30 + column) * 8, 8);
        }
    }
    layout_ref transpose = builder.finish();
    EXPECT_EQ(transpose->kind(), shape::strided);
    ASSERT_EQ(transpose->view().num_dims, 2);
    EXPECT_EQ(transpose->view().dims[0].stride, 240);
    EXPECT_EQ(transpose->view().dims[1].stride, 8);
}

TEST(layout, array_of_structs_is_a_repeated_short_list) {
    layout_builder builder;
    for (int64_t i = 0; i < 10000; ++i) {
        builder.append(i * 24, 12);
        builder.append(i * 24 + 16, 5);
    }
    layout_ref structs = builder.finish();
    EXPECT_EQ(structs->kind(), shape::repeated);
    EXPECT_EQ(structs->view().num_blocks, 2u);
    EXPECT_EQ(structs->view().dims[0].count, 10000u);
}

TEST(layout, irregular_blocks_of_one_length_cost_four_bytes_each) {
    std::mt19937_64 random(3);
    layout_builder builder;
    for (int i = 0; i < 100000; ++i) {
        builder.append(static_cast<int64_t>(random() % (1 << 30)) * 64, 64);  // span 64 GiB
    }
    layout_ref list = builder.finish();
    EXPECT_EQ(list->kind(), shape::irregular);
    EXPECT_LE(list->table_bytes(), 100000u * 4 + 8 * 100);
}

TEST(layout, rows_of_triangles_are_a_progression) {
    auto rows = [](int64_t first, int64_t step, int64_t stride, int64_t blocks) {
        std::vector<block> all;
        for (int64_t b = 0; b < blocks; ++b) {
            all.push_back({-40 + b * stride, static_cast<uint64_t>(first + b * step)});
        }
        return all;
    };
    for (const std::vector<block> &all : {rows(8000, -8, 8008, 1000), rows(8, 8, 8000, 1000),
                                          rows(17, 3, -5000, 700), rows(1, 1, 100, 2)}) {
        const block_progression found = build(all)->view().progression;
        EXPECT_EQ(found.first_length, all[0].length);
        EXPECT_EQ(found.length_step, static_cast<int64_t>(all[1].length - all[0].length));
        EXPECT_EQ(found.stride, all[1].displacement - all[0].displacement);
        const layout_ref twice = build(all)->repeat(2, int64_t{100} << 20);
        EXPECT_EQ(twice->view().progression.first_length, found.first_length);
    }
    for (const size_t odd : {0, 1, 2, 500, 998, 999}) {
        std::vector<block> all = rows(8000, -8, 8008, 1000);
        all[odd].length += 1;
        EXPECT_EQ(build(all)->view().progression.first_length, 0u) << odd;
        all = rows(8000, -8, 8008, 1000);
        all[odd].displacement -= 1;
        EXPECT_EQ(build(all)->view().progression.first_length, 0u) << odd;
    }
    const std::vector<block> uniform = {{0, 8}, {100, 8}, {300, 8}},
                             huge = rows(int64_t{1} << 29, 1 << 20, int64_t{1} << 30, 3),
                             slow = rows(int64_t{1} << 28, 1, int64_t{1} << 30, 3);
    for (const std::vector<block> &all : {uniform, huge, slow}) {
        EXPECT_EQ(build(all)->view().progression.first_length, 0u);
    }
}

TEST(layout, frames_beyond_32_bits_use_wide_tables) {
    std::vector<block> blocks = {{0, 3}, {int64_t(1) << 40, 5}, {-(int64_t(1) << 41) + 1, 7}};
    layout_ref list = build(blocks);
    EXPECT_NE(list->view().tables.wide_displacement, nullptr);
    EXPECT_EQ(list->view().locate(3).displacement, int64_t(1) << 40);
    EXPECT_EQ(list->view().locate(8).displacement, -(int64_t(1) << 41) + 1);
}

TEST(layout, repeating_equals_listing) {
    std::vector<block> element = {{0, 8}, {16, 8}, {100, 4}};
    std::vector<block> listed;
    for (int64_t i = 0; i < 50; ++i) {
        for (const block &b : element) {
            listed.push_back({b.displacement + i * 200, b.length});
        }
    }
    EXPECT_TRUE(build(element)->repeat(50, 200)->equal(*build(listed)));
}

// Within a frame no entry of the tables says where its last block ends.
TEST(layout, lists_that_differ_in_two_lengths_are_not_equal) {
    std::vector<block> blocks;
    for (uint64_t b = 0; b < 3 * frame_blocks; ++b) {
        blocks.push_back({static_cast<int64_t>(b * 977 % (3 * frame_blocks) * 64), 8 + b % 5});
    }
    const layout_ref one = build(blocks);
    for (uint64_t b : {uint64_t(0), frame_blocks - 2, frame_blocks - 1, frame_blocks}) {
        for (uint64_t c : {2 * frame_blocks - 1, 2 * frame_blocks, 3 * frame_blocks - 1}) {
            std::vector<block> changed = blocks;
            changed[b].length += 20;
            changed[c].length += 10;
            const layout_ref left = build(changed);
            changed[b].length -= 10;
            changed[c].length += 10;
            const layout_ref right = build(changed);
            ASSERT_EQ(left->packed_size(), right->packed_size());
            EXPECT_FALSE(left->equal(*right)) << b << " and " << c;
            EXPECT_FALSE(left->hash() == right->hash()) << b << " and " << c;
            EXPECT_FALSE(left->equal(*one));
        }
    }
}

TEST(layout, touching_elements_are_contiguous) {
    layout_ref whole = build({{4, 12}})->repeat(1000, 12);
    EXPECT_EQ(whole->kind(), shape::contiguous);
    EXPECT_EQ(whole->view().block_length, 12000u);
}

TEST(layout, counts_beyond_32_bits) {
    layout_ref huge = build({{0, 4}})->repeat(uint64_t(3) << 31, 8);
    ASSERT_NE(huge, nullptr);
    EXPECT_EQ(huge->packed_size(), uint64_t(3) << 33);
    EXPECT_EQ(huge->total_blocks(), uint64_t(3) << 31);
    EXPECT_EQ(huge->view().locate((uint64_t(3) << 33) - 1).displacement,
              ((int64_t(3) << 31) - 1) * 8 + 3);
}

TEST(layout, totals_that_overflow_are_refused) {
    EXPECT_EQ(build({{0, 4}, {10, 1}})->repeat(uint64_t(1) << 62, 16), nullptr);
    EXPECT_EQ(build({{0, 1}})->repeat(4, INT64_MAX / 2), nullptr);
    layout_builder builder;
    builder.append(INT64_MAX - 3, 8);
    EXPECT_EQ(builder.finish(), nullptr);
}

TEST(layout, spans_beyond_the_largest_displacement) {
    constexpr int64_t first = -(int64_t(1) << 62);
    layout_ref wide = build({{first, 8}})->repeat(2, INT64_MAX);
    ASSERT_NE(wide, nullptr);
    EXPECT_NE(wide->describe().find("span 9223372036854775815 B"), std::string::npos)
        << wide->describe();
    layout_cursor cursor(*wide, 0);
    EXPECT_EQ(cursor.next(UINT64_MAX).displacement, first);
    EXPECT_EQ(cursor.next(UINT64_MAX).displacement, first + INT64_MAX);
    EXPECT_EQ(cursor.next(UINT64_MAX).length, 0u);
}

TEST(layout, more_dims_than_a_view_holds_are_listed) {
    layout_ref nested = build({{0, 1}});
    type_map map = {0};
    int64_t stride = 3;
    for (int level = 0; level < 10; ++level) {
        type_map twice = map;
        for (int64_t displacement : map) {
            twice.push_back(displacement + stride);
        }
        map = twice;
        nested = nested->repeat(2, stride);
        ASSERT_NE(nested, nullptr);
        stride = stride * 3 + 1;
    }
    std::mt19937_64 random(1);
    expect_same(*nested, map, random);
}

TEST(layout, nothing_is_empty) {
    EXPECT_EQ(build({})->kind(), shape::empty);
    EXPECT_EQ(build({{5, 0}})->repeat(7, 3)->packed_size(), 0u);
    EXPECT_EQ(build({{5, 1}})->repeat(0, 3)->kind(), shape::empty);
}

}  // namespace
}  // namespace cuda_nc
