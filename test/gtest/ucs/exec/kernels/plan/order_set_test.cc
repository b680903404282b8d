// Sets of orders on the CPU against a naive byte map: each thread block of the launch moves its
// piece.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <random>
#include <utility>
#include <vector>

#include "ucs/exec/kernels/random_case.hpp"
#include "ucs/exec/kernels/watched_buffers.hpp"

#include "ucs/exec/kernels/move/order_moves.hpp"
#include "ucs/exec/kernels/plan/order_set.hpp"
#include "ucs/layout/layout.hpp"

namespace cuda_nc::exec::test {
namespace {

// One of a set, whose source and target are laid out alike.
struct alike_order {
    alike_order(random_case what_, uint64_t seed)
        : what(std::move(what_)),
          source(what.span(), what.laid_out_skew, seed),
          target(what.span(), what.packed_skew, seed + 1),
          expected(target.data, target.data + target.size),
          writes(target.size) {
        order.target = &what.view;
        order.source_base = source.data - what.layout->lower();
        order.target_base = target.data - what.layout->lower();
    }
    void choose(uint64_t offset, uint64_t length) {
        order.packed_offset = offset;
        order.length = length;
        const std::vector<int64_t> places = what.bytes();
        for (uint64_t i = offset; i < offset + length; ++i) {
            const auto at = static_cast<size_t>(places[i] - what.layout->lower());
            expected[at] = source.data[at];
        }
    }

    random_case what;
    buffer source, target;
    std::vector<char> expected;
    std::vector<uint8_t> writes;
    gpu::move_order order;
};

template <uint32_t Most>
void run_set(uint64_t seed) {
    case_maker random(seed);
    std::deque<alike_order> all;
    uint32_t words[Most][gpu::order_words] = {};
    const uint64_t wanted = random.between(1, Most);
    for (int tries = 0; all.size() < wanted && tries < 200; ++tries) {
        alike_order &one = all.emplace_back(random.make_rows(), seed * 1000 + all.size());
        const uint64_t offset = random.below(one.what.view.packed_size);
        one.choose(offset, random.between(1, std::min(one.what.view.packed_size - offset,
                                                      gpu::longest_of_many)));
        if (!plan_order(one.order, &words[all.size() - 1])) {
            all.pop_back();
        }
    }
    ASSERT_FALSE(all.empty());
    const uint64_t first = random.between(1, uint64_t{1} << 40);
    const auto blocks = static_cast<uint32_t>(random.between(1, most_set_blocks));
    order_set<Most> set;
    plan_set(words, all.size(), first, blocks, &set);
    const uint32_t grid = set.first_block[all.size()];
    EXPECT_LE(grid, std::max<size_t>(blocks, all.size()));
    std::vector<uint32_t> order_of_blocks(grid);
    for (uint32_t i = 0; i < grid; ++i) {
        order_of_blocks[i] = i;
    }
    std::shuffle(order_of_blocks.begin(), order_of_blocks.end(), std::mt19937_64(seed));
    std::vector<uint32_t> pieces_seen(all.size());
    for (uint32_t block : order_of_blocks) {
        const uint32_t which = order_of_block(set, block);
        ASSERT_LT(which, all.size());
        const uint32_t *line = set.words[which], piece = block - set.first_block[which];
        ASSERT_LT(piece, line[order_word::pieces]);
        ASSERT_LE(line[order_word::pieces], gpu::most_order_pieces);
        EXPECT_EQ(line[order_word::place], (first + which) % gpu::order_ring_size);
        EXPECT_EQ(line[order_word::number], static_cast<uint32_t>(first + which));
        pieces_seen[which] |= 1u << piece;
        const order_piece its = piece_of_line(line, piece);
        ASSERT_LT(its.begin, its.end);
        alike_order &one = all[which];
        watch = access_watch();
        turn_watch(one.source, one.target, &one.writes);
        constexpr uint32_t threads = 32;
        for (uint32_t thread = 0; thread < threads; ++thread) {
            move_order(line, its.begin, its.end, thread, threads);
        }
        watch.writes.swap(one.writes);
        ASSERT_EQ(watch.fault, "");
    }
    for (size_t i = 0; i < all.size(); ++i) {
        EXPECT_EQ(pieces_seen[i], (1u << set.words[i][order_word::pieces]) - 1);
        ASSERT_EQ(std::memcmp(all[i].target.data, all[i].expected.data(), all[i].target.size), 0);
    }
}

TEST(order_set, thread_blocks_move_each_byte_once_and_touch_no_gap) {
    for (uint64_t seed = 1; seed <= 200; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        run_set<few_in_set>(seed);
        run_set<many_in_set>(seed);
        if (testing::Test::HasFailure()) {
            return;
        }
    }
}

}  // namespace
}  // namespace cuda_nc::exec::test
