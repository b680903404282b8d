// Orders of a mover's kernel on the CPU against a naive byte map: planned, written into a line,
// read again, cut into pieces and moved.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>

#include "ucs/exec/kernels/random_case.hpp"
#include "ucs/exec/kernels/watched_buffers.hpp"

#include "ucs/exec/kernels/move/order_moves.hpp"
#include "ucs/exec/kernels/plan/order_plan.hpp"
#include "ucs/layout/layout.hpp"

namespace cuda_nc::exec::test {
namespace {

constexpr uint32_t threads = 64;

constexpr auto num_layouts = static_cast<size_t>(line_layout::progression) + 1;

struct tally {
    int planned = 0, packed = 0, unpacked = 0, refused = 0;
    int of[num_layouts] = {};  // planned, by the line's layout
};

// An order from `from` to `to`; where that is null, to another buffer laid out alike.
std::string run_order(const random_case &from, const random_case *to, case_maker &random,
                      uint64_t seed, tally *all) {
    const random_case &target_case = to == nullptr ? from : *to;
    const uint64_t total = std::min(from.view.packed_size, target_case.view.packed_size);
    gpu::move_order order;
    order.packed_offset = random.below(3) == 0 ? random.below(total) : 0;
    order.length = std::min(total - order.packed_offset, gpu::longest_order);
    if (random.below(2) == 0) {
        order.length = random.between(1, order.length);
    }
    buffer source(from.span(), from.laid_out_skew, seed);
    buffer target(target_case.span(), target_case.packed_skew, seed + 1);
    std::vector<char> expected(target.data, target.data + target.size);
    const std::vector<int64_t> there = from.bytes(), here = target_case.bytes();
    for (uint64_t i = order.packed_offset; i < order.packed_offset + order.length; ++i) {
        expected[static_cast<size_t>(here[i] - target_case.layout->lower())] =
            source.data[there[i] - from.layout->lower()];
    }
    order.source = to == nullptr ? nullptr : &from.view;
    order.source_base = source.data - from.layout->lower();
    order.target = &target_case.view;
    order.target_base = target.data - target_case.layout->lower();

    order.into_own_memory = random.below(2) == 0;

    uint32_t words[gpu::order_words] = {};
    if (!plan_order(order, &words)) {
        ++all->refused;
        return "";
    }
    if (is_into_own_memory(words[order_word::header]) != order.into_own_memory) {
        return "another place where the bytes land";
    }
    ++all->planned;
    ++all->of[static_cast<size_t>(layout_of_order(words[order_word::header]))];
    const packed_side side = packed_side_of_order(words[order_word::header]);
    all->packed += side == packed_side::target ? 1 : 0;
    all->unpacked += side == packed_side::source ? 1 : 0;
    const auto length = static_cast<uint32_t>(order.length);
    if (words[order_word::length] != length) {
        return "another length";
    }
    std::vector<uint8_t> writes(target.size);
    watch = access_watch();
    const order_cut cut =
        cut_order(length, static_cast<uint32_t>(random.between(1, mover_thread_blocks)));
    const auto first_piece = static_cast<uint32_t>(random.below(cut.pieces));
    for (uint32_t i = 0; i < cut.pieces; ++i) {  // in another order
        const uint32_t piece = (first_piece + i) % cut.pieces;
        const uint32_t end = std::min(length, (piece + 1) * cut.length);
        turn_watch(source, target, &writes);
        for (uint32_t thread = 0; thread < threads; ++thread) {
            move_order(words, piece * cut.length, end, thread, threads);
        }
        watch.writes.swap(writes);
        if (!watch.fault.empty()) {
            return watch.fault;
        }
    }
    for (size_t i = 0; i < target.size; ++i) {
        if (target.data[i] != expected[i]) {
            return "byte " + std::to_string(i) + " of " + std::to_string(target.size);
        }
    }
    return "";
}

TEST(order_plan, orders_bring_random_layouts_to_random_layouts) {
    tally all;
    for (uint64_t seed = 1; seed <= 600; ++seed) {
        case_maker random(seed);
        random_case from = seed % 8 == 0   ? random.make_long()
                           : seed % 8 == 1 ? random.make_progression()
                           : seed % 8 == 2 ? random.make_short_list(seed % 3 == 1)
                                           : random.make();
        const random_case to = seed % 5 == 0 ? random.make_long() : random.make();
        ASSERT_EQ(run_order(from, nullptr, random, seed, &all), "") << "alike, seed " << seed;
        ASSERT_EQ(run_order(from, &to, random, seed, &all), "") << "seed " << seed;
        const random_case solid = random.make_contiguous();
        ASSERT_EQ(run_order(from, &solid, random, seed, &all), "") << "packed, seed " << seed;
        ASSERT_EQ(run_order(solid, &to, random, seed, &all), "") << "unpacked, seed " << seed;
        const random_case rows = random.make_rows();
        ASSERT_EQ(run_order(rows, &solid, random, seed, &all), "") << "rows packed, seed " << seed;
        ASSERT_EQ(run_order(solid, &rows, random, seed, &all), "") << "rows unpacked, " << seed;
        ASSERT_EQ(run_order(rows, nullptr, random, seed, &all), "") << "rows, seed " << seed;
    }
    EXPECT_GT(all.planned, 1000);
    EXPECT_GT(all.packed, 200);
    EXPECT_GT(all.unpacked, 200);
    EXPECT_GT(all.refused, 1000)
        << "bytes, wide tables, repeated lists, and sides that are not laid out alike";
    for (size_t layout = 0; layout < num_layouts; ++layout) {
        EXPECT_GT(all.of[layout], 20) << layout;
    }
}

TEST(order_plan, rows_of_whole_words_are_served) {
    std::mt19937 random(7);
    auto number = [&](uint64_t least, uint64_t most) {
        return std::uniform_int_distribution<uint64_t>(least, most)(random);
    };
    for (int i = 0; i < 2000; ++i) {
        const uint64_t unit = uint64_t{8} << number(0, 1);
        layout_builder one;
        one.append(static_cast<int64_t>(unit * number(0, 9)), unit * number(1, 600));
        layout_ref rows = one.finish();
        for (uint64_t d = number(1, 2); d > 0; --d) {
            const auto stride = static_cast<uint64_t>(rows->upper_bound()) + unit * number(1, 9);
            rows = rows->repeat(number(2, 12), static_cast<int64_t>((stride + 15) / unit * unit));
        }
        const layout_view packed = contiguous_view(rows->packed_size());
        gpu::move_order order;
        char memory[16];
        order.source_base = order.target_base = reinterpret_cast<char *>(
            reinterpret_cast<uintptr_t>(memory + 15) & ~uintptr_t{15});  // is not touched
        order.length = std::min(rows->packed_size(), gpu::longest_order);
        uint32_t words[gpu::order_words];
        order.target = &rows->view();
        ASSERT_TRUE(plan_order(order, &words)) << i;
        order.source = &packed;
        ASSERT_TRUE(plan_order(order, &words)) << i << " unpacked";
        order.source = &rows->view();
        order.target = &packed;
        ASSERT_TRUE(plan_order(order, &words)) << i << " packed";
    }
}

TEST(order_plan, pieces_cover_an_order_and_none_keeps_a_thread_block_long) {
    for (uint32_t length : {1u, 8192u, 8193u, 16385u, 65536u, 65537u, 300000u, 1u << 20}) {
        for (uint32_t idle = 1; idle <= mover_thread_blocks; ++idle) {
            const order_cut cut = cut_order(length, idle);
            ASSERT_GE(cut.pieces, 1u);
            ASSERT_LE(cut.pieces, gpu::most_order_pieces);
            EXPECT_LE(cut.length, longest_piece);
            EXPECT_TRUE(cut.pieces == 1 || cut.length % shortest_piece == 0);
            EXPECT_GE(uint64_t{cut.pieces} * cut.length, length);
            EXPECT_LT(uint64_t{cut.pieces - 1} * cut.length, length);
            EXPECT_LE(cut.pieces, std::max(idle, length / longest_piece + 1));
        }
    }
    EXPECT_EQ(cut_order(16383, 16).pieces, 1u);
    EXPECT_EQ(cut_order(16384, 16).pieces, 2u);
    EXPECT_EQ(cut_order(65536, 16).pieces, 8u);
    EXPECT_EQ(cut_order(65536, 2).length, 32768u);
    EXPECT_EQ(cut_order(1 << 20, 16).pieces, 16u);
}

}  // namespace
}  // namespace cuda_nc::exec::test
