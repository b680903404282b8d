// Orders of a mover's kernel on the CPU against a naive byte map: planned, written into a line and
// a body, read again, cut into pieces and moved.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "ucs/exec/kernels/random_case.hpp"
#include "ucs/exec/kernels/watched_buffers.hpp"

#include "ucs/exec/kernels/move/order_moves.hpp"
#include "ucs/exec/kernels/plan/order_plan.hpp"
#include "ucs/layout/layout.hpp"

namespace cuda_nc::exec::test {
namespace {

constexpr uint32_t threads = 64;

void move_by_one_block(const order_mover &mover, const part &piece) {
    unit_table table;
    const uint32_t step = mover.how == method::units ? warp_lanes : 1;
    for (uint32_t thread = 0; thread < threads; thread += step) {
        move_order_part(mover, piece, thread, threads, &table, lanes_in_step());
    }
}

struct tally {
    int in_line = 0, in_body = 0, refused = 0, by_words = 0, by_windows = 0, by_units = 0;
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

    uint32_t words[gpu::order_words] = {};
    order_body written, body;
    auto scratch = std::make_unique<pipe_plan>();
    if (!plan_order(order, scratch.get(), words, &written)) {
        ++all->refused;
        return "";
    }
    const bool in_line = kind_of_order(words[order_word::header]) == order_kind::in_line;
    if (in_line) {
        body.mover.how = method::words;
        body.num_parts = 1;
        ++all->in_line;
    } else {
        std::memcpy(static_cast<void *>(&body), &written, sizeof(body));
        ++all->in_body;
    }
    all->by_words += body.mover.how == method::words ? 1 : 0;
    all->by_windows += body.mover.how == method::windows ? 1 : 0;
    all->by_units += body.mover.how == method::units ? 1 : 0;
    const auto length = static_cast<uint32_t>(order.length);
    if (words[order_word::length] != length) {
        return "another length";
    }
    buffer slot(order_slot, 0, seed + 2);
    std::vector<uint8_t> target_writes(target.size);
    watch = access_watch();
    const order_cut cut =
        cut_order(length, static_cast<uint32_t>(random.between(1, mover_thread_blocks)));
    const auto first_piece = static_cast<uint32_t>(random.below(cut.pieces));
    for (uint32_t i = 0; i < cut.pieces; ++i) {  // in another order
        const uint32_t piece = (first_piece + i) % cut.pieces;
        const uint32_t end = std::min(length, (piece + 1) * cut.length);
        const uint32_t step = body.num_parts == 1 ? end : order_slot;
        for (uint32_t at = piece * cut.length; at < end; at += step) {
            for (uint32_t which = 0; which < body.num_parts; ++which) {
                const uint32_t stop = at + std::min(end - at, step);
                const bool last = which + 1 == body.num_parts;
                std::vector<uint8_t> slot_writes(last ? 0 : slot.size);
                std::vector<uint8_t> &writes = last ? target_writes : slot_writes;
                turn_watch(which == 0 ? source : slot, last ? target : slot, &writes);
                if (in_line) {
                    for (uint32_t thread = 0; thread < threads; ++thread) {
                        move_order_line(words, at, stop, thread, threads);
                    }
                } else {
                    narrow_order(&body, which, at, stop, slot.data);
                    move_by_one_block(body.mover, body.parts[which]);
                }
                watch.writes.swap(writes);
                if (!watch.fault.empty()) {
                    return watch.fault;
                }
            }
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
        const random_case rows = random.make_rows();
        ASSERT_EQ(run_order(rows, nullptr, random, seed, &all), "") << "rows, seed " << seed;
    }
    EXPECT_GT(all.in_line, 400);
    EXPECT_GT(all.in_body, 100);
    EXPECT_GT(all.by_words, 50);
    EXPECT_GT(all.by_windows, 50);
    EXPECT_GT(all.by_units, 50);
    EXPECT_LT(all.refused, 450);
}

TEST(order_plan, pieces_cover_an_order_and_none_keeps_a_thread_block_long) {
    for (uint32_t length : {1u, 4096u, 4097u, 65536u, 65537u, 300000u, 1u << 20}) {
        for (uint32_t idle = 1; idle <= mover_thread_blocks; ++idle) {
            const order_cut cut = cut_order(length, idle);
            ASSERT_GE(cut.pieces, 1u);
            EXPECT_LE(cut.length, longest_piece);
            EXPECT_TRUE(cut.pieces == 1 || cut.length % shortest_piece == 0);
            EXPECT_GE(uint64_t{cut.pieces} * cut.length, length);
            EXPECT_LT(uint64_t{cut.pieces - 1} * cut.length, length);
            EXPECT_LE(cut.pieces, std::max(idle, length / longest_piece + 1));
        }
    }
    EXPECT_EQ(cut_order(4096, 16).pieces, 1u);
    EXPECT_EQ(cut_order(65536, 16).pieces, 16u);
}

}  // namespace
}  // namespace cuda_nc::exec::test
