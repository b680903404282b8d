#include "ucs/layout/layout_spec.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

namespace cuda_nc {
namespace {

using blocks = std::vector<std::pair<int64_t, uint64_t>>;

// Neighbours that touch are one block.
blocks blocks_of(const std::string &text) {
    std::string error;
    layout_ref what = parse_layout(text, &error);
    blocks all;
    if (what == nullptr) {
        ADD_FAILURE() << text << ": " << error;
        return all;
    }
    layout_cursor cursor(*what, 0);
    for (block one = cursor.next(UINT64_MAX); one.length != 0; one = cursor.next(UINT64_MAX)) {
        if (!all.empty() &&
            all.back().first + static_cast<int64_t>(all.back().second) == one.displacement) {
            all.back().second += one.length;
        } else {
            all.emplace_back(one.displacement, one.length);
        }
    }
    return all;
}

TEST(layout_spec, vector) {
    EXPECT_EQ(blocks_of("vector:3,8,16"), (blocks{{0, 8}, {16, 8}, {32, 8}}));
    EXPECT_EQ(blocks_of("vector:2,8,-16"), (blocks{{0, 8}, {-16, 8}}));
    EXPECT_EQ(blocks_of("vector:2,1K,1M"), (blocks{{0, 1024}, {1 << 20, 1024}}));
    EXPECT_EQ(blocks_of("vector:0,8,16"), blocks());
}

TEST(layout_spec, subarray) {
    EXPECT_EQ(blocks_of("subarray:8,4x10,2x3,1x5"), (blocks{{120, 24}, {200, 24}}));
    EXPECT_EQ(blocks_of("subarray:1,2x3x4,2x1x2,0x2x1"), (blocks{{9, 2}, {21, 2}}));
}

TEST(layout_spec, triangle) {
    EXPECT_EQ(blocks_of("triangle:3,8"), (blocks{{0, 8}, {24, 16}, {48, 24}}));
}

TEST(layout_spec, transpose) {
    EXPECT_EQ(blocks_of("transpose:2,8"), (blocks{{0, 8}, {16, 8}, {8, 8}, {24, 8}}));
}

TEST(layout_spec, struct_of_members) {
    EXPECT_EQ(blocks_of("struct:24,2,0:8,12:4"), (blocks{{0, 8}, {12, 4}, {24, 8}, {36, 4}}));
    EXPECT_EQ(blocks_of("struct:-8,2,0:4"), (blocks{{0, 4}, {-8, 4}}));
}

TEST(layout_spec, indexed_blocks_are_apart_in_random_order_and_repeatable) {
    blocks all = blocks_of("indexed:1000,16,64,16,7");
    EXPECT_EQ(all, blocks_of("indexed:1000,16,64,16,7"));
    EXPECT_NE(all, blocks_of("indexed:1000,16,64,16,8"));
    ASSERT_EQ(all.size(), 1000u);
    EXPECT_FALSE(std::is_sorted(all.begin(), all.end()));
    std::sort(all.begin(), all.end());
    for (size_t i = 0; i < all.size(); ++i) {
        EXPECT_EQ(all[i].first % 16, 0);
        EXPECT_GE(all[i].second, 16u);
        EXPECT_LE(all[i].second, 64u);
        EXPECT_TRUE(i == 0 || all[i - 1].first + 64 <= all[i].first);
    }
}

TEST(layout_spec, nests_vary_their_first_pair_fastest) {
    EXPECT_EQ(blocks_of("nest:4,2,10,3,100"),
              (blocks{{0, 4}, {10, 4}, {100, 4}, {110, 4}, {200, 4}, {210, 4}}));
    EXPECT_EQ(blocks_of("nest:8,3,16"), blocks_of("vector:3,8,16"));
}

TEST(layout_spec, parts_follow_each_other_where_they_are_put) {
    EXPECT_EQ(blocks_of("parts:1000=vector:2,8,16;0=struct:24,1,0:4,8:1"),
              (blocks{{1000, 8}, {1016, 8}, {0, 4}, {8, 1}}));
    EXPECT_EQ(blocks_of("parts:-8=vector:1,4,4"), (blocks{{-8, 4}}));
}

TEST(layout_spec, blocks_of_a_file) {
    std::string path = testing::TempDir() + "layout_spec_test_blocks";
    std::ofstream(path) << "0 8\n-100 4\n1K 16\n";
    EXPECT_EQ(blocks_of("blocks:" + path), (blocks{{0, 8}, {-100, 4}, {1024, 16}}));
    std::remove(path.c_str());
}

TEST(layout_spec, wrong_texts_are_answered_with_a_reason) {
    for (const char *text : {"",
                             "vector",
                             "vector:",
                             "vector:1,2",
                             "vector:1,2,3,4",
                             "vector:a,8,16",
                             "vector:-1,8,16",
                             "vector:1,inf,8",
                             "circle:3",
                             "subarray:8,4x4,2x2,0",
                             "subarray:8,4x4,2x2,3x0",
                             "triangle:9G,8",
                             "vector:4G,4G,8G",
                             "struct:8,1,7",
                             "indexed:4,8,4,1,1",
                             "indexed:4,1,4,0,1",
                             "indexed:2,1,1,18446744073709551615,1",
                             "nest:4,2",
                             "nest:4,2,8,3",
                             "nest:1,4G,0,4G,0",
                             "nest:8,4294967297,0,4294967296,0",
                             "parts:",
                             "parts:vector:1,8,8",
                             "parts:0=circle:3",
                             "parts:0=vector:1,8,8;",
                             "parts:0=nest:8,1024G,16",
                             "parts:0=vector:1,8,16;0=vector:256M,8,16",
                             "blocks:/no/such/file",
                             "blocks:/tmp"}) {
        std::string error;
        EXPECT_EQ(parse_layout(text, &error), nullptr) << text;
        EXPECT_FALSE(error.empty()) << text;
    }
}

TEST(layout_spec, a_wrong_number_of_arguments_is_answered_with_the_right_ones) {
    std::string error;
    EXPECT_EQ(parse_layout("vector:10,8", &error), nullptr);
    EXPECT_NE(error.find("it is vector:COUNT,BLOCK,STRIDE"), std::string::npos) << error;
    EXPECT_NE(layout_forms().find("vector:COUNT,BLOCK,STRIDE"), std::string::npos);
}

}  // namespace
}  // namespace cuda_nc
