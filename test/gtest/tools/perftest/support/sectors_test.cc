#include "tools/perftest/support/sectors.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tools/perftest/layouts/catalogue.hpp"
#include "ucs/layout/layout_spec.hpp"

namespace cuda_nc::tools {
namespace {

sector_count count(const std::string &text, uint64_t skew, uint64_t sector_size) {
    const std::optional<sector_count> is = count_sectors(*layout_of(text), skew, sector_size);
    EXPECT_TRUE(is) << text;
    return is.value_or(sector_count{});
}

// Byte by byte.
sector_count naive_count(const layout &what, uint64_t skew, uint64_t sector_size) {
    std::map<int64_t, std::vector<bool>> sectors;
    layout_cursor cursor(what, 0);
    for (block one = cursor.next(UINT64_MAX); one.length != 0; one = cursor.next(UINT64_MAX)) {
        for (uint64_t i = 0; i < one.length; ++i) {
            const uint64_t at =
                static_cast<uint64_t>(one.displacement - what.lower_bound()) + i + skew;
            std::vector<bool> &bytes = sectors[static_cast<int64_t>(at / sector_size)];
            bytes.resize(sector_size);
            bytes[at % sector_size] = true;
        }
    }
    sector_count is;
    for (const auto &[sector, bytes] : sectors) {
        ++is.touched;
        is.in_part += std::find(bytes.begin(), bytes.end(), false) != bytes.end();
    }
    return is;
}

uint64_t touched(const std::string &text, gpu::direction dir, uint64_t skew = 0) {
    return touched_bytes(*layout_of(text), dir, skew, gpu_sector).value_or(0);
}

TEST(sectors, a_vector_with_gaps_touches_its_span) {
    const sector_count is = count("vector:1024,8,16", 0, 32);
    EXPECT_EQ(is.touched * 32, 2u * 1024 * 8);
    EXPECT_EQ(is.in_part, is.touched);
}

TEST(sectors, contiguous_bytes_touch_their_own) {
    const sector_count is = count("vector:1,4096,4096", 0, 32);
    EXPECT_EQ(is.touched, 128u);
    EXPECT_EQ(is.in_part, 0u);
}

TEST(sectors, misaligned_bytes_touch_one_more) {
    const sector_count is = count("vector:1,4096,4096", 1, 32);
    EXPECT_EQ(is.touched, 129u);
    EXPECT_EQ(is.in_part, 2u);
    EXPECT_EQ(count("vector:2,32,64", 16, 32).touched, 4u);
    EXPECT_EQ(count("vector:2,32,64", 0, 32).touched, 2u);
}

TEST(sectors, blocks_that_share_a_sector_count_it_once) {
    EXPECT_EQ(count("struct:128,1,0:8,24:16,40:8", 0, 32).touched, 2u);
    EXPECT_EQ(count("struct:128,1,40:8,24:16,0:8", 0, 32).touched, 2u);
    EXPECT_EQ(count("struct:128,1,40:8,0:48,24:16", 0, 32).touched, 2u);
}

TEST(sectors, blocks_together_make_up_a_whole_sector_in_any_order) {
    EXPECT_EQ(count("struct:128,1,0:16,16:16,32:8", 0, 32).in_part, 1u);
    EXPECT_EQ(count("struct:128,1,32:8,16:16,0:16", 0, 32).in_part, 1u);
    EXPECT_EQ(count("transpose:64,8", 0, 32).in_part, 0u);
}

TEST(sectors, layouts_agree_with_a_count_of_bytes) {
    const std::vector<std::string> texts = {"vector:57,3,-7",
                                            "transpose:13,5",
                                            "nest:3,5,11,4,-20,3,7",
                                            "subarray:8,9x8x7,3x2x5,1x2x1",
                                            "struct:37,11,5:9,0:3,30:2",
                                            "triangle:23,6"};
    for (const std::string &text : texts) {
        const layout_ref what = layout_of(text);
        for (uint64_t sector : {gpu_sector, host_sector}) {
            for (uint64_t skew : {0, 1, 31}) {
                const sector_count wanted = naive_count(*what, skew, sector);
                const sector_count is = count(text, skew, sector);
                EXPECT_EQ(is.touched, wanted.touched) << text << " off by " << skew;
                EXPECT_EQ(is.in_part, wanted.in_part) << text << " off by " << skew;
            }
        }
    }
}

TEST(sectors, random_lists_agree_with_a_count_of_bytes) {
    constexpr unsigned seed = 11;
    std::mt19937 random(seed);
    for (int run = 0; run < 300; ++run) {
        layout_builder builder;
        const int blocks = 1 + static_cast<int>(random() % 60);
        for (int i = 0; i < blocks; ++i) {
            builder.append(static_cast<int64_t>(random() % 2000) - 1000, 1 + random() % 90);
        }
        const layout_ref what = builder.finish();
        const uint64_t skew = random() % 32;
        const sector_count wanted = naive_count(*what, skew, 32);
        const std::optional<sector_count> is = count_sectors(*what, skew, 32);
        ASSERT_TRUE(is);
        ASSERT_EQ(is->touched, wanted.touched) << "run " << run << ", seed " << seed;
        ASSERT_EQ(is->in_part, wanted.in_part) << "run " << run << ", seed " << seed;
    }
}

TEST(sectors, layouts_of_very_many_blocks_are_not_counted) {
    EXPECT_FALSE(count_sectors(*layout_of("vector:1G,8,16"), 0, 32));
    EXPECT_FALSE(touched_bytes(*layout_of("vector:1G,8,16"), gpu::direction::pack, 0, 32));
}

TEST(sectors, what_is_written_in_part_is_read_before) {
    const uint64_t packed = 1024 * 8;
    EXPECT_EQ(touched("vector:1K,8,16", gpu::direction::pack), 3 * packed);
    EXPECT_EQ(touched("vector:1K,8,16", gpu::direction::unpack), 5 * packed);
    EXPECT_EQ(touched("vector:1K,8,16", gpu::direction::copy), 6 * packed);
    for (gpu::direction dir :
         {gpu::direction::pack, gpu::direction::unpack, gpu::direction::copy}) {
        EXPECT_EQ(touched("vector:1K,64,128", dir), 2u * 64 * 1024);
    }
    EXPECT_EQ(touched("vector:1,40,40", gpu::direction::pack), 5 * gpu_sector);
}

}  // namespace
}  // namespace cuda_nc::tools
