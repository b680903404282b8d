// The kernel of pair lists, run on the CPU, against bytes copied one by one.
#include <gtest/gtest.h>

#include <string>

#include "ucs/exec/kernels/plan/pair_plan.hpp"
#include "ucs/exec/kernels/watched_buffers.hpp"
#include "ucs/gpu/random_pairs.hpp"
#include "ucs/layout/layout.hpp"

namespace cuda_nc::exec::test {
namespace {

template <class Work>
void emulate(const Work &work, const pair_plan &plan) {
    std::vector<pair_table> tables(plan.threads / warp_lanes);
    for (uint32_t block = 0; block < plan.grid; ++block) {
        for (uint32_t warp = 0; warp < tables.size(); ++warp) {
            const thread_place at{warp * warp_lanes, plan.threads, block, plan.grid};
            if (plan.parts_log2 != 0) {
                pairs_warp<true>(work, at, &tables[warp], lanes_in_step());
            } else {
                pairs_warp<false>(work, at, &tables[warp], lanes_in_step());
            }
        }
    }
}

void emulate(const std::vector<gpu::block_pair> &pairs, const pair_plan &plan) {
    emulate(pair_work{pairs.data(), pairs.size(), plan.run, plan.parts_log2}, plan);
}

// What is wrong after a move of `length` bytes, or nothing.
std::string check(const std::vector<char> &expected, const buffer &target, size_t length) {
    if (!watch.fault.empty()) {
        return watch.fault;
    }
    for (size_t i = 0; i < target.size; ++i) {
        if (target.data[i] != expected[i]) {
            return "byte " + std::to_string(i) + " of " + std::to_string(target.size);
        }
    }
    size_t written = 0;
    for (uint8_t one : watch.writes) {
        written += one;
    }
    return written == length ? "" : "wrote " + std::to_string(written) + " bytes";
}

TEST(pairs, one_pair_of_every_alignment_by_every_number_of_lanes) {
    std::vector<size_t> lengths = {127,  128,  129,  255,  511,  512,  513, 1000,
                                   1023, 1024, 1500, 2048, 4095, 4096, 4111};
    for (size_t length = 1; length < 67; ++length) {
        lengths.push_back(length);
    }
    constexpr size_t largest = 4200;
    buffer source(largest, 0, 1);
    for (uint32_t log2 : {0u, 1u, 2u, line_log2, warp_log2}) {
        for (size_t length : lengths) {
            if (length > 300 && log2 < line_log2) {
                continue;  // the same loop
            }
            for (uint32_t skews = 0; skews < 256; ++skews) {
                // A source that ends in the last word that may be read, and begins in the first.
                const uint32_t from = skews % 16, to = skews / 16;
                buffer target(length + 2, (to + 15) % 16, 2);
                std::vector<char> expected(target.data, target.data + target.size);
                std::copy_n(source.data + from, length, expected.data() + 1);
                watch_buffers(source, target);
                watch.read_end =
                    reinterpret_cast<uintptr_t>(source.data) + (from + length + 15) / 16 * 16;
                const gpu::block_pair pair = {source.data + from, target.data + 1, length};
                for (uint32_t lane = 0; lane < 1u << log2; ++lane) {
                    move_pair(pair, lane, log2);
                }
                ASSERT_EQ(check(expected, target, length), "")
                    << length << " bytes from " << from << " to " << to << " by 2^" << log2;
                ASSERT_TRUE(length < 32 || watch.widest_write == 16);
            }
        }
    }
}

TEST(pairs, warps_that_share_a_pair_move_it_all_and_once) {
    buffer source(70000, 0, 5);
    for (size_t length :
         {0, 1, 64, 4080, 4096, 4097, 8191, 8192, 12289, 16384, 16385, 40000, 65536}) {
        for (uint32_t skews = 0; skews < 16; ++skews) {
            const uint32_t from = skews * 7 % 16, to = skews;
            for (uint32_t parts_log2 : {1u, 2u, 3u}) {
                buffer target(length + 2, (to + 15) % 16, 6);
                std::vector<char> expected(target.data, target.data + target.size);
                std::copy_n(source.data + from, length, expected.data() + 1);
                watch_buffers(source, target);
                pair_plan plan;
                plan.grid = 3;  // not all warps have a pair
                plan.threads = 4 * warp_lanes;
                plan.run = 1;
                plan.parts_log2 = parts_log2;
                emulate({{source.data + from, target.data + 1, length}}, plan);
                ASSERT_EQ(check(expected, target, length), "")
                    << length << " bytes from " << from << " to " << to << " by 2^" << parts_log2;
            }
        }
    }
}

TEST(pairs, of_no_length_are_not_looked_at_and_very_long_ones_are_seen) {
    buffer source(64, 0, 7), target(64, 0, 8);
    for (uint32_t parts_log2 : {0u, 2u}) {
        watch_buffers(source, target);
        pair_plan plan;
        plan.grid = plan.run = 1;
        plan.threads = 4 * warp_lanes;
        plan.parts_log2 = parts_log2;
        emulate({{source.data + source.size + 3, target.data + 5, 0}}, plan);
        EXPECT_EQ(watch.fault, "");
        EXPECT_EQ(watch.widest_write, 0u);
    }
    const gpu::block_pair long_one = {nullptr, nullptr, uint64_t{1} << 32};
    EXPECT_EQ(length_among(long_one, false), UINT32_MAX);
    EXPECT_EQ(length_among(long_one, true), 0u);
}

TEST(pairs, words_that_are_aligned_are_written_whole) {
    for (uint32_t length : {1u, 2u, 4u, 8u, 16u}) {
        buffer source(64, 0, 3), target(64, 0, 4);
        for (uint32_t from = 0; from < 32; ++from) {
            for (uint32_t to = 0; to < 32; to += length) {
                watch_buffers(source, target);
                move_pair({source.data + from, target.data + to, length}, 0, 0);
                EXPECT_EQ(watch.widest_write, length) << "others may read it meanwhile";
            }
        }
    }
}

TEST(pairs, random_lists_move_their_bytes_and_nothing_else) {
    constexpr uint64_t seed = 20261124;
    std::mt19937_64 random(seed);
    for (unsigned round = 0; round < 150; ++round) {
        SCOPED_TRACE("round " + std::to_string(round) + " of seed " + std::to_string(seed));
        const size_t count = 1 + random() % (round % 3 == 0 ? 3000 : round % 3 == 1 ? 300 : 20);
        const auto list =
            gpu::test::random_pairs::make(random, count, round % gpu::test::random_pairs::kinds);
        buffer source(list.source_size, random() % 16, random());
        buffer target(list.target_size, random() % 16, random());
        std::vector<char> expected(target.data, target.data + target.size);
        list.apply(source.data, expected.data());
        const unsigned sms[] = {1, 3, 132};
        const pair_plan plan = plan_pairs(list.places.size(), sms[random() % 3],
                                          static_cast<unsigned>(random() % 3), random() % 2 == 0);
        watch_buffers(source, target);
        emulate(list.at(source.data, target.data), plan);
        ASSERT_EQ(check(expected, target, list.total()), "")
            << list.places.size() << " pairs, " << plan.grid << " thread blocks of " << plan.threads
            << ", runs of " << plan.run;
    }
}

// Pages of a list to rows of a pitch, some cut into several pairs.
TEST(pairs, of_two_layouts_move_their_bytes_and_nothing_else) {
    constexpr uint64_t seed = 20261129;
    std::mt19937_64 random(seed);
    const uint64_t steps[] = {16, 24, 100, 511, 4096, 20000, 44032};
    for (unsigned round = 0; round < 70; ++round) {
        SCOPED_TRACE("round " + std::to_string(round) + " of seed " + std::to_string(seed));
        gpu::layout_pairs pairs;
        pairs.step = steps[round % 7];
        const uint64_t number = 1 + random() % (pairs.step > 600 ? 12 : 700);
        pairs.pairs_of_step = fast_divide(1 + pairs.step / 16384);
        pairs.piece = divide_up(pairs.step, pairs.pairs_of_step.divisor);
        const uint64_t long_block = 2 * pairs.step, pitch = long_block + random() % 50;
        std::vector<int64_t> pages(2 * number);
        for (uint64_t i = 0; i < pages.size(); ++i) {
            pages[i] = static_cast<int64_t>(i * (pairs.step + 3));
        }
        std::shuffle(pages.begin(), pages.end(), random);
        layout_builder list, rows;
        for (uint64_t i = 0; i < pages.size(); ++i) {
            list.append(pages[i], pairs.step);
            rows.append(static_cast<int64_t>(i / 2 * pitch + i % 2 * pairs.step), pairs.step);
        }
        const layout_ref from = list.finish(), to = rows.finish();
        pairs.source = from->view();
        pairs.target = to->view();
        buffer source(pages.size() * (pairs.step + 3), random() % 16, random());
        buffer target(number * pitch, random() % 16, random());
        pairs.source_base = source.data;
        pairs.target_base = target.data;
        std::vector<char> expected(target.data, target.data + target.size);
        for (uint64_t i = 0; i < pages.size(); ++i) {
            std::copy_n(source.data + pages[i], pairs.step,
                        expected.data() + i / 2 * pitch + i % 2 * pairs.step);
        }
        const pair_plan plan = plan_pairs(pairs.count(), round % 2 == 0 ? 3 : 132, 0, false);
        ASSERT_EQ(pairs.count(), pages.size() * pairs.pairs_of_step.divisor);
        watch_buffers(source, target);
        emulate(layout_pair_work{pairs, pairs.count(), plan.run, plan.parts_log2}, plan);
        ASSERT_EQ(check(expected, target, pages.size() * pairs.step), "")
            << pages.size() << " pages of " << pairs.step;
    }
}

TEST(pairs, short_ones_have_a_lane_each_and_long_ones_a_warp) {
    EXPECT_EQ(pair_lanes_log2(1, 32), 0u);
    EXPECT_EQ(pair_lanes_log2(16, 32), 0u);
    EXPECT_EQ(pair_lanes_log2(17, 32), 1u);
    EXPECT_EQ(pair_lanes_log2(64, 32), 2u);
    EXPECT_EQ(pair_lanes_log2(65, 32), 3u);
    EXPECT_EQ(pair_lanes_log2(2048, 32), 3u);
    EXPECT_EQ(pair_lanes_log2(2048, 1), 5u) << "nothing else to do";
    EXPECT_EQ(pair_lanes_log2(2049, 32), 5u);
    EXPECT_EQ(pair_lanes_log2(UINT32_MAX, 32), 5u);
}

}  // namespace
}  // namespace cuda_nc::exec::test
