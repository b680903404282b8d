// Which kernels the rules choose.
#include "ucs/exec/kernels/plan/policy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "ucs/exec/kernels/random_case.hpp"
#include "ucs/layout/layout_spec.hpp"

namespace cuda_nc::exec::test {
namespace {

constexpr auto pack = gpu::direction::pack, unpack = gpu::direction::unpack;

kernel_choice choose(const std::string &text, gpu::direction dir,
                     const kernel_rules &rules = usual_rules, size_t misalign = 0) {
    std::string error;
    const layout_ref what = parse_layout(text, &error);
    EXPECT_NE(what, nullptr) << error;
    gpu::transfer work;
    work.dir = dir;
    work.layout = what->view();
    work.base = reinterpret_cast<char *>((uintptr_t{1} << 40) + misalign);
    work.packed = reinterpret_cast<char *>(uintptr_t{1} << 41);
    work.length = what->packed_size();
    part first;
    cut_part(work, 0, &first);
    kernel_limits limits;
    limits.num_sms = 132;
    limits.l2_size = size_t(60) << 20;
    limits.rules = &rules;
    return choose_kernel(first, work.layout.align_log2, limits, 0);
}

TEST(kernel_rules, usual_ones_choose_what_was_best_on_an_h200) {
    const struct {
        const char *text;
        gpu::direction dir;
        method how;
        uint32_t word_log2, threads, grid, unit_log2, reserve;
        size_t misalign;
    } known[] = {
        {"vector:32M,8,16", pack, method::words, 3, 256, 65536, 0, 0, 0},
        {"vector:32M,8,16", unpack, method::words, 3, 256, 65536, 0, 0, 0},
        {"vector:8M,64,128", pack, method::words, 4, 256, 131072, 0, 0, 0},
        {"vector:8M,64,128", unpack, method::words, 4, 256, 131072, 0, 36000, 0},
        {"vector:2M,64,128", pack, method::words, 4, 256, 32768, 0, 0, 0},
        {"vector:2M,64,128", unpack, method::words, 4, 256, 32768, 0, 36000, 0},
        {"vector:1M,4K,8K", pack, method::words, 4, 256, 262144, 0, 0, 0},
        {"vector:1M,4K,8K", unpack, method::words, 4, 256, 262144, 0, 0, 0},
        {"vector:1398101,12,20", pack, method::words, 2, 256, 2048, 0, 0, 0},
        {"vector:1398101,12,20", unpack, method::words, 2, 256, 2048, 0, 0, 0},
        {"vector:1398101,12,20", pack, method::windows, 0, 256, 4096, 0, 0, 1},
        {"vector:1398101,12,20", unpack, method::words, 0, 256, 4096, 0, 0, 1},
        {"vector:256K,64,128", pack, method::windows, 0, 256, 4096, 0, 0, 1},
        {"vector:256K,64,128", unpack, method::words, 0, 256, 4096, 0, 0, 1},
        {"vector:1M,65,131", pack, method::windows, 0, 256, 16640, 0, 0, 0},
        {"vector:1M,65,131", unpack, method::words, 0, 256, 16640, 0, 0, 0},
        {"vector:1M,130,262", pack, method::windows, 0, 256, 33280, 0, 0, 0},
        {"vector:1M,130,262", unpack, method::words, 1, 256, 16640, 0, 0, 0},
        {"vector:1M,129,257", unpack, method::pieces, 0, 256, 65536, 0, 0, 0},
        {"struct:24,986895,0:17", pack, method::windows, 0, 256, 4096, 0, 0, 0},
        {"struct:24,986895,0:17", unpack, method::words, 0, 256, 4096, 0, 0, 0},
        {"transpose:1024,8", pack, method::tiles, 3, 128, 1024, 0, 0, 0},
        {"transpose:1024,8", unpack, method::tiles, 3, 128, 1024, 0, 0, 0},
        {"indexed:64K,12,12,4,1", pack, method::words, 2, 256, 256, 0, 0, 0},
        {"indexed:64K,12,12,4,1", unpack, method::words, 2, 256, 256, 0, 0, 0},
        {"indexed:64K,132,132,4,1", pack, method::words, 2, 256, 2112, 0, 0, 0},
        {"indexed:64K,132,132,4,1", unpack, method::words, 2, 256, 2112, 0, 0, 0},
        {"indexed:64K,260,260,4,1", unpack, method::pieces, 0, 256, 4096, 0, 0, 0},
        {"indexed:64K,8,4096,8,5", pack, method::units, 3, 128, 8213, 12, 0, 0},
        {"indexed:64K,8,4096,8,5", unpack, method::blocks, 3, 256, 8192, 0, 0, 0},
        {"indexed:8K,1,4096,1,5", pack, method::units, 0, 128, 2033, 11, 0, 0},
        {"indexed:8K,1,4096,1,5", unpack, method::units, 0, 128, 2033, 11, 0, 0},
        {"indexed:64K,8,120,8,5", pack, method::blocks, 3, 256, 1024, 0, 0, 0},
        {"indexed:64K,8,120,8,5", unpack, method::blocks, 3, 256, 1024, 0, 0, 0},
    };
    for (const auto &one : known) {
        const kernel_choice c = choose(one.text, one.dir, usual_rules, one.misalign);
        EXPECT_EQ(c.how, one.how) << one.text;
        EXPECT_EQ(c.word_log2, one.word_log2) << one.text;
        EXPECT_EQ(c.threads, one.threads) << one.text;
        EXPECT_EQ(c.grid, one.grid) << one.text;
        EXPECT_EQ(c.unit_log2, one.unit_log2) << one.text;
        EXPECT_EQ(c.reserve, one.reserve) << one.text;
        EXPECT_FALSE(c.deep && c.how == method::words) << one.text;
    }
}

TEST(kernel_rules, each_decides_what_it_says) {
    auto with = [](uint32_t kernel_rules::*which, uint32_t value) {
        kernel_rules rules;
        rules.*which = value;
        return rules;
    };
    using r = kernel_rules;
    const std::string vector = "vector:1M,12,20", list = "indexed:64K,12,12,4,1",
                      uneven = "indexed:32K,8,8192,8,1", bytes = "indexed:64K,1,4096,1,1";
    EXPECT_EQ(choose(vector, pack, with(&r::pack_words_4, 11)).how, method::windows);
    EXPECT_EQ(choose(vector, pack, with(&r::pack_words_4, 12)).how, method::words);
    EXPECT_EQ(choose(vector, unpack, with(&r::vector_words_4, 11)).how, method::pieces);
    EXPECT_EQ(choose(vector, unpack, with(&r::unpack_words_4, 11)).how, method::words);
    EXPECT_EQ(choose(list, unpack, with(&r::unpack_words_4, 11)).how, method::pieces);
    EXPECT_EQ(choose(list, unpack, with(&r::vector_words_4, 11)).how, method::words);
    EXPECT_EQ(choose("vector:1M,5,9", pack, with(&r::pack_words_1, 5)).how, method::words);
    EXPECT_EQ(choose("vector:1M,10,18", pack, with(&r::pack_words_2, 10)).how, method::words);
    EXPECT_EQ(choose("vector:1M,8,16", pack, with(&r::word_threads, 512)).threads, 512u);
    EXPECT_EQ(choose("vector:1M,64,128", pack, with(&r::piece_threads, 64), 1).threads, 64u);
    EXPECT_EQ(choose("vector:1M,500,999", unpack, with(&r::piece_threads, 64), 1).threads, 64u);
    EXPECT_EQ(choose(uneven, unpack, with(&r::unit_threads, 256)).threads, 256u);
    EXPECT_EQ(choose(uneven, unpack, with(&r::word_unit_log2, 13)).unit_log2, 13u);
    EXPECT_EQ(choose(uneven, pack, with(&r::unit_log2, 10)).unit_log2, 10u);
    EXPECT_EQ(choose(bytes, unpack, with(&r::unit_log2, 10)).unit_log2, 10u);
    EXPECT_EQ(choose("indexed:256K,1,100,1,1", pack, with(&r::unit_blocks, 8)).unit_log2, 9u);
    const std::string short_list = "indexed:1K,1,240,1,7", words = "indexed:1K,8,504,8,1";
    EXPECT_EQ(choose(short_list, pack, with(&r::pack_blocks_1, 130000)).how, method::blocks);
    EXPECT_EQ(choose(short_list, pack, with(&r::pack_blocks_1, 110000)).how, method::units);
    EXPECT_EQ(choose(short_list, unpack, with(&r::unpack_blocks_1, 130000)).how, method::blocks);
    EXPECT_EQ(choose(short_list, unpack, with(&r::unpack_blocks_1, 110000)).how, method::units);
    EXPECT_EQ(choose(words, pack, with(&r::pack_blocks_4, 270000)).how, method::blocks);
    EXPECT_EQ(choose(words, pack, with(&r::pack_blocks_4, 250000)).how, method::units);
    EXPECT_EQ(choose(words, unpack, with(&r::unpack_blocks_4, 270000)).how, method::blocks);
    EXPECT_EQ(choose(words, unpack, with(&r::unpack_blocks_4, 250000)).how, method::units);
    EXPECT_EQ(choose("struct:40,1M,0:8,24:12", pack, with(&r::pack_blocks_4, 1)).how,
              method::blocks);
    EXPECT_EQ(choose("struct:40,1M,0:8,24:12", pack, with(&r::pack_blocks_4, 0)).how,
              method::units);
    EXPECT_EQ(choose("vector:4M,64,128", unpack, with(&r::half_line_reserve, 16)).reserve, 16u);
    EXPECT_EQ(choose("transpose:1024,8", pack, with(&r::tile_width, 7)).how, method::words);
    EXPECT_TRUE(choose("vector:1M,8,16", pack, with(&r::pack_deep, 8)).deep);
    EXPECT_FALSE(choose("vector:1M,8,16", pack, with(&r::pack_deep, 16)).deep);
    EXPECT_FALSE(choose("vector:1M,8,16", unpack, with(&r::pack_deep, 8)).deep);
    EXPECT_TRUE(choose("vector:1M,8,16", unpack, with(&r::unpack_deep, 8)).deep);
}

TEST(kernel_rules, blocks_are_for_short_lists_of_blocks_that_some_lanes_move_in_a_few_turns) {
    const struct {
        const char *text;
        method how;
        uint32_t word_log2, lanes_log2, items;
    } known[] = {
        {"indexed:1K,1,100,1,7", method::blocks, 0, 4, 16384},
        {"triangle:100,8", method::blocks, 3, 4, 1600},
        {"indexed:1024,8,120,8,1", method::blocks, 3, 2, 4096},
        {"indexed:1025,8,120,8,1", method::blocks, 3, 2, 4100},  // more than a tile
        {"parts:0=vector:10,1,2;1000=vector:1,1024,1024", method::blocks, 0, 5, 352},
        {"parts:0=vector:10,1,2;1000=vector:1,1025,1025", method::units, 0, 0, 0},
        {"indexed:128K,8,504,8,1", method::units, 0, 0, 0},  // 32 MiB
        {"struct:40,100,0:8,24:12", method::blocks, 2, 0, 200},
        {"struct:40,8M,0:8,24:12", method::blocks, 2, 0, 16 << 20},
        // Nearly all lanes would have nothing to do, and they are many.
        {"parts:0=vector:1000,1,2;10000=vector:1,1024,1024", method::blocks, 0, 5, 32032},
        {"parts:0=vector:3000,1,2;10000=vector:1,1024,1024", method::units, 0, 0, 0},
    };
    for (const auto &one : known) {
        const kernel_choice c = choose(one.text, pack, usual_rules);
        EXPECT_EQ(c.how, one.how) << one.text;
        if (one.how == method::blocks) {
            EXPECT_EQ(c.word_log2, one.word_log2) << one.text;
            EXPECT_EQ(c.blocks.lanes_log2, one.lanes_log2) << one.text;
            EXPECT_EQ(c.blocks.items, one.items) << one.text;
        }
    }
}

TEST(kernel_rules, thread_blocks_are_joined_only_where_that_makes_them_few) {
    const struct {
        const char *text;
        gpu::direction dir;
        uint32_t threads, grid;
    } known[] = {
        {"vector:4K,8,16", pack, 256, 8},     {"vector:8K,8,16", pack, 512, 8},
        {"vector:16K,8,16", pack, 1024, 8},   {"vector:32K,8,16", pack, 1024, 16},
        {"vector:64K,8,16", pack, 256, 256},  {"transpose:64,8", pack, 128, 4},
        {"transpose:256,8", pack, 128, 64},   {"indexed:1K,1,100,1,7", pack, 1024, 16},
        {"vector:100,12,20", unpack, 256, 2},
    };
    for (const auto &one : known) {
        kernel_choice c = choose(one.text, one.dir, usual_rules);
        join_thread_blocks(&c, 16);
        EXPECT_EQ(c.threads, one.threads) << one.text;
        EXPECT_EQ(c.grid, one.grid) << one.text;
        EXPECT_GE(c.grid * c.per_thread_block, c.items) << one.text;
    }
    // Units: a table of shared memory for each warp.
    kernel_rules rules;
    rules.pack_blocks_1 = 0;
    kernel_choice c = choose("indexed:1K,1,100,1,7", pack, rules);
    EXPECT_EQ(c.grid, 26u);
    join_thread_blocks(&c, 16);
    EXPECT_EQ(c.threads, 512u);
    EXPECT_EQ(c.grid, 7u);
}

TEST(kernel_rules, usual_ones_are_in_their_ranges) {
    for (const kernel_rule &one : all_kernel_rules) {
        EXPECT_TRUE(one.allows(usual_rules.*one.value)) << one.name;
        EXPECT_FALSE(one.allows(one.most + uint64_t{1})) << one.name;
        EXPECT_TRUE(one.allows(one.most)) << one.name;
        EXPECT_TRUE(one.allows(one.least)) << one.name;
    }
    EXPECT_EQ(std::size(all_kernel_rules) * sizeof(uint32_t), sizeof(kernel_rules));
}

TEST(kernel_rules, whatever_they_are_launches_stay_within_what_kernels_take) {
    for (uint64_t seed = 1; seed <= 3000; ++seed) {
        case_maker maker(seed);
        const random_case c = seed % 2 == 0 ? maker.make_long() : maker.make();
        const kernel_rules rules = maker.make_rules();
        if (c.length == 0) {
            continue;
        }
        part first;
        cut_part(c.transfer(), 0, &first);
        kernel_limits limits;
        limits.num_sms = 132;
        limits.rules = &rules;
        for (unsigned max_sms : {0u, 3u}) {
            const kernel_choice k = choose_kernel(first, c.view.align_log2, limits, max_sms);
            const bool word_units = k.how == method::units && c.dir != pack && k.word_log2 >= 2;
            ASSERT_LE(k.threads, word_units ? word_unit_threads : 1024u) << seed;
            ASSERT_EQ(k.threads % warp_lanes, 0u) << seed;
            ASSERT_LE(k.reserve, 48u << 10) << seed;
            ASSERT_GE(k.grid, 1u) << seed;
        }
    }
}

}  // namespace
}  // namespace cuda_nc::exec::test
