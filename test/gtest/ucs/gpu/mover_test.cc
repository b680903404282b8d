// Movers on every platform that has one: random layouts against a naive byte map, many orders at a
// time, from several threads, and the kernel's leaving.
#include "ucs/gpu/mover.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "ucs/gpu/order_ring.hpp"
#include "ucs/gpu/random_layouts.hpp"

namespace cuda_nc::gpu::test {
namespace {

class mover_test : public random_layout_test {
  protected:
    void SetUp() override {
        random_layout_test::SetUp();
        if (!IsSkipped()) {
            mover_ = device_->get_mover();
            if (mover_ == nullptr) {
                GTEST_SKIP() << "no mover on " << GetParam();
            }
        }
    }

    // Until the order has ended, without a question that would launch a kernel anew.
    ucs_status_t await(mover::ticket which) {
        const auto begun = std::chrono::steady_clock::now();
        ucs_status_t status = UCS_INPROGRESS;
        while ((status = mover_->state(which)) == UCS_INPROGRESS) {
            if (std::chrono::steady_clock::now() - begun > std::chrono::seconds(20)) {
                ADD_FAILURE() << "order " << which << " is lost";
                status = mover_->ask(which);
                if (status != UCS_INPROGRESS) {
                    break;
                }
            }
            std::this_thread::yield();
        }
        return status;
    }
    // Gives one order, however long there is no room. Some layouts no kernel serves: 0 after
    // `most`.
    mover::ticket offer(const move_order &one, std::chrono::milliseconds most) {
        mover::ticket its = 0;
        for (const auto begun = std::chrono::steady_clock::now();
             mover_->give(&one, 1, &its).number == 0;) {
            mover_->expect();
            if (std::chrono::steady_clock::now() - begun > most) {
                return 0;
            }
            std::this_thread::yield();
        }
        return its;
    }
    mover::ticket give(const move_order &one) {
        const mover::ticket its = offer(one, std::chrono::seconds(60));
        EXPECT_NE(its, 0u) << "the mover takes no order";
        return its;
    }

    // Two buffers of one length, laid out alike or not, and an order of a part of it.
    struct random_move {
        laid_out_buffer from, to;
        layout_view source, target;  // with tables in the device's memory
        move_order order;
        std::vector<char> expected;
    };
    void fill(random_move *move) {
        const uint64_t total = std::min(move->from.total(), move->to.total());
        const bool alike = move->from.layout == move->to.layout;
        move->target = on_device(move->to.layout->view());
        if (!alike) {
            move->source = on_device(move->from.layout->view());
            move->order.source = &move->source;
        }
        move->order.source_base = move->from.zero_address();
        move->order.target = &move->target;
        move->order.target_base = move->to.zero_address();
        move->order.packed_offset = number(0, 1) == 0 ? 0 : number(0, total - 1);
        const uint64_t most = std::min(total - move->order.packed_offset, longest_order);
        move->order.length = number(0, 1) == 0 ? most : number(1, most);
        ASSERT_EQ(finish(*stream_), UCS_OK);  // no stream orders the mover behind the tables
        fill_expected(move);
    }
    void fill_expected(random_move *move) {
        const std::vector<size_t> source = move->from.positions(), target = move->to.positions();
        move->expected = move->to.image;
        for (uint64_t i = 0; i < move->order.length; ++i) {
            const size_t at = move->order.packed_offset + i;
            move->expected[target[at]] = move->from.image[source[at]];
        }
    }
    // One block, repeated over one or two dims or, `solid`, not.
    std::shared_ptr<hand_made_layout> random_rows(bool solid) {
        const uint64_t unit = uint64_t{8} << number(0, 1);
        const uint64_t length = unit * number(1, solid ? 9000 : 60);
        std::vector<layout_dim> dims;
        auto span = static_cast<int64_t>(length);
        for (uint64_t d = solid ? 0 : number(1, 2); d > 0; --d) {
            const int64_t stride = span + static_cast<int64_t>(unit * number(1, 9));
            dims.push_back({number(2, 12), stride});
            span = stride * static_cast<int64_t>(dims.back().count);
        }
        return std::make_shared<hand_made_layout>(
            std::vector<piece>{{static_cast<int64_t>(unit * number(0, 9)), length}}, dims, false);
    }
    // What every mover serves: rows to rows, to contiguous memory, and from there.
    void make_rows(random_move *move, uint64_t which) {
        move->from = random_buffer(random_rows(which % 3 == 2));
        move->to =
            which % 3 == 0 ? random_buffer(move->from) : random_buffer(random_rows(which % 3 == 1));
        fill(move);
    }
    // What some movers serve.
    void make_any(random_move *move, bool alike) {
        move->from = random_buffer();
        move->to = alike ? random_buffer(move->from) : random_buffer();
        fill(move);
    }
    std::vector<char> contents(const laid_out_buffer &of) {
        return get(of.bytes->address(), of.image.size());
    }
    void check(random_move *move) { EXPECT_EQ(contents(move->to), move->expected); }
    // An order of `length` bytes between two buffers of their own that are laid out alike.
    struct plain_move {
        std::unique_ptr<memory> from, to;
        std::vector<char> bytes;
        layout_view what;
        move_order order;
    };
    plain_move make_plain(uint64_t blocks) {
        plain_move made;
        const size_t size = blocks * 16;
        made.from = allocate(size);
        made.to = allocate(size);
        made.bytes = random_bytes(size, random_);
        put(made.from->address(), made.bytes);
        put(made.to->address(), std::vector<char>(size));
        made.what = strided(blocks, 8, 16);
        made.order.source_base = made.from->address();
        made.order.target_base = made.to->address();
        made.order.length = 8 * blocks;
        return made;
    }
    void check(const plain_move &move) {
        std::vector<char> expected(move.bytes.size());
        for (size_t i = 0; i < expected.size(); ++i) {
            expected[i] = i % 16 < 8 ? move.bytes[i] : 0;
        }
        EXPECT_EQ(get(move.to->address(), expected.size()), expected);
    }

    mover *mover_ = nullptr;
};

TEST_P(mover_test, moves_layouts_and_touches_no_gap) {
    constexpr int rounds = 80;
    for (int round = 0; round < rounds; ++round) {
        SCOPED_TRACE("round " + std::to_string(round) + ", seed " + std::to_string(seed_));
        random_move move;
        const bool any = round % 4 == 3;
        any ? make_any(&move, round % 8 == 3) : make_rows(&move, number(0, 2));
        // No other order is outstanding: what is not taken soon is not served.
        const auto most = any ? std::chrono::milliseconds(100) : std::chrono::milliseconds(10000);
        const mover::ticket its = offer(move.order, most);
        if (its == 0) {
            ASSERT_TRUE(any) << "rows are refused";
            continue;
        }
        ASSERT_EQ(await(its), UCS_OK);
        mover_->release(its);
        check(&move);
        if (round % 7 == 0) {
            mover_->leave();
        }
        if (HasFailure()) {
            return;
        }
    }
}

TEST_P(mover_test, many_orders_are_given_at_once) {
    std::vector<random_move> moves(40);
    std::vector<move_order> orders;
    for (size_t i = 0; i < moves.size(); ++i) {
        make_rows(&moves[i], i);
        orders.push_back(moves[i].order);
    }
    std::vector<mover::ticket> tickets(moves.size());
    const auto begun = std::chrono::steady_clock::now();
    for (size_t given = 0; given < orders.size();) {
        // There is room for all.
        ASSERT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(60));
        given += mover_->give(orders.data() + given, orders.size() - given, tickets.data() + given)
                     .number;
        mover_->expect();
    }
    for (size_t i = 0; i < moves.size(); ++i) {
        ASSERT_EQ(await(tickets[i]), UCS_OK);
        mover_->release(tickets[i]);
        check(&moves[i]);
    }
}

// They have a launch of their own, or the kernel, which comes and goes, takes them.
TEST_P(mover_test, sets_move_layouts_and_touch_no_gap) {
    constexpr int rounds = 60;
    giving how;
    how.may_launch_set = true;
    int sets = 0;
    for (int round = 0; round < rounds; ++round) {
        SCOPED_TRACE("round " + std::to_string(round) + ", seed " + std::to_string(seed_));
        // Many at a time are a burst, and launch the kernel the next time.
        std::vector<random_move> moves(round % 20 == 19 ? number(3, most_of_set) : 2);
        std::vector<move_order> orders;
        for (random_move &one : moves) {
            number(0, 3) == 0 ? make_any(&one, number(0, 1) == 0) : make_rows(&one, number(0, 2));
            one.order.length = std::min(one.order.length, longest_listed_of_many);
            fill_expected(&one);
            orders.push_back(one.order);
        }
        std::vector<mover::ticket> tickets(moves.size());
        const given taken = mover_->give(orders.data(), orders.size(), tickets.data(), how);
        sets += taken.launched_set ? 1 : 0;
        for (size_t i = 0; i < moves.size(); ++i) {
            if (tickets[i] == 0) {
                moves[i].expected = moves[i].to.image;  // it is not served
            } else {
                ASSERT_EQ(await(tickets[i]), UCS_OK);
                mover_->release(tickets[i]);
            }
        }
        for (random_move &one : moves) {
            check(&one);
        }
        if (HasFailure()) {
            return;
        }
    }
    EXPECT_GT(sets, 0);
}

// An order that has ended is in nobody's way, though its owner has not given it back.
TEST_P(mover_test, an_order_that_is_never_given_back_takes_no_room) {
    plain_move move = make_plain(4);
    move.order.target = &move.what;
    const move_order &one = move.order;
    const mover::ticket oldest = give(one);
    ASSERT_EQ(await(oldest), UCS_OK);
    for (uint32_t i = 0; i < order_ring_size + 2; ++i) {
        const mover::ticket its = give(one);
        ASSERT_NE(its, 0u) << i;
        ASSERT_EQ(await(its), UCS_OK);
        mover_->release(its);
        ASSERT_EQ(mover_->state(oldest), UCS_OK) << i;
    }
    mover_->release(oldest);
    const mover::ticket last = give(one);
    EXPECT_EQ(await(last), UCS_OK);
    mover_->release(last);
}

// How many are taken at a time: mover_desk_test.
TEST_P(mover_test, long_orders_and_shorter_ones_behind_them_are_moved) {
    plain_move move = make_plain(most_together / 8);
    move.order.target = &move.what;
    move_order one = move.order;
    one.length = most_together / 2;
    std::vector<mover::ticket> given = {give(one), give(one)};
    one.length = longest_of_many;
    given.push_back(give(one));
    one.length = most_together / 2;
    given.push_back(give(one));
    for (mover::ticket which : given) {
        EXPECT_EQ(await(which), UCS_OK);
        mover_->release(which);
    }
}

TEST_P(mover_test, long_lists_and_shorter_ones_behind_them_are_moved) {
    constexpr uint64_t length = longest_listed_of_many, total = 3 * length;
    random_move move;
    move.from = random_buffer(std::make_shared<hand_made_layout>(
        std::vector<piece>{{0, length}, {3 * length, length}, {5 * length, length}},
        std::vector<layout_dim>{}, false));
    move.to = random_buffer(move.from);
    fill(&move);
    move_order one = move.order;
    one.packed_offset = 0;
    one.length = total;
    std::vector<mover::ticket> given;
    for (uint64_t bytes = total; bytes <= most_together; bytes += total) {
        given.push_back(give(one));
    }
    one.length = longest_listed_of_many;
    given.push_back(give(one));
    for (mover::ticket which : given) {
        EXPECT_EQ(await(which), UCS_OK);
        mover_->release(which);
    }
}

// Those that are left would be launched, and one launch moves all of them.
TEST_P(mover_test, long_orders_that_come_together_are_taken_all_or_none) {
    plain_move move = make_plain(most_together / 8);
    move.order.target = &move.what;
    move_order all[4];
    for (move_order &one : all) {
        one = move.order;
        one.length = most_together / 2;
    }
    all[1].length = longest_of_many;
    // Before, so that a kernel is there.
    const mover::ticket before = give(all[1]);
    EXPECT_EQ(await(before), UCS_OK);
    mover_->release(before);
    mover::ticket tickets[4];
    const size_t given = mover_->give(all, 4, tickets).number;
    EXPECT_LE(given, 1u);
    for (const size_t i : {0, 2, 3}) {
        EXPECT_EQ(tickets[i], 0u);
    }
    if (given == 1) {
        EXPECT_EQ(await(tickets[1]), UCS_OK);
        mover_->release(tickets[1]);
    }
    const size_t two = mover_->give(all + 2, 2, tickets).number;
    EXPECT_TRUE(two == 0 || two == 2);
    for (size_t i = 0; i < two; ++i) {
        EXPECT_EQ(await(tickets[i]), UCS_OK);
        mover_->release(tickets[i]);
    }
}

TEST_P(mover_test, orders_out_of_range_are_refused) {
    plain_move move = make_plain(4);
    move_order one = move.order;
    mover::ticket its = 0;
    EXPECT_EQ(mover_->give(&one, 1, &its).number, 0u) << "no target";
    one.target = &move.what;
    one.length = 0;
    EXPECT_EQ(mover_->give(&one, 1, &its).number, 0u) << "no bytes";
    one.length = move.what.packed_size + 1;
    EXPECT_EQ(mover_->give(&one, 1, &its).number, 0u) << "more bytes than there are";
    one.length = longest_order + 1;
    EXPECT_EQ(mover_->give(&one, 1, &its).number, 0u) << "too long";
    one.length = 1;
    one.packed_offset = move.what.packed_size;
    EXPECT_EQ(mover_->give(&one, 1, &its).number, 0u) << "behind the end";
}

// Threads that give orders while another one tells the kernel to leave again and again.
TEST_P(mover_test, threads_share_it_while_it_leaves) {
    constexpr int threads = 3, rounds = 60;
    std::vector<plain_move> all;
    for (int i = 0; i < threads; ++i) {
        all.push_back(make_plain(static_cast<uint64_t>(1) << (4 * i + 4)));
    }
    for (plain_move &one : all) {
        one.order.target = &one.what;
    }
    std::atomic<bool> done{false};
    std::atomic<int> wrong{0};
    std::vector<std::thread> givers;
    for (plain_move &one : all) {
        givers.emplace_back([&] {
            for (int i = 0; i < rounds; ++i) {
                const mover::ticket its = give(one.order);
                wrong += await(its) == UCS_OK ? 0 : 1;
                mover_->release(its);
            }
        });
    }
    std::thread leaver([&] {
        while (!done.load()) {
            mover_->leave();
            std::this_thread::yield();
        }
    });
    for (std::thread &one : givers) {
        one.join();
    }
    done = true;
    leaver.join();
    EXPECT_EQ(wrong.load(), 0);
    for (const plain_move &one : all) {
        check(one);
    }
}

INSTANTIATE_TEST_SUITE_P(platforms, mover_test, testing::ValuesIn(platform_names()),
                         name_of_platform());

}  // namespace
}  // namespace cuda_nc::gpu::test
