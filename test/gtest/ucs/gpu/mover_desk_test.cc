// What becomes of orders for a kernel that is there alone, where it leaves while they are given:
// over a kernel that the test plays. It never ends unless the test says so.
#include "ucs/gpu/mover_desk.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "ucs/layout/layout_view.hpp"

namespace cuda_nc::gpu {
namespace {

class played_mover final : public mover_desk {
  public:
    explicit played_mover(bool always) : mover_desk(50, always, 0) {
        memory.begin();
        use(&memory);
    }
    ~played_mover() override { retire(); }

    void say(uint64_t next, bool leaving, bool gone) {
        mover_door door;
        door.next = static_cast<uint32_t>(next);
        door.instance = instance & mover_door::instance_mask;
        door.leaving = leaving;
        door.gone = gone;
        memory.door.value = door.word();
    }

    using mover_desk::begin_with;
    alignas(mover_memory) mover_memory memory = {};
    uint32_t instance = 0;
    struct set {
        ticket first;
        size_t number;
    };
    std::vector<mover_launch> launches_seen;
    std::vector<set> sets_seen;
    // What each launch comes to: of either kind, of kernels that stay.
    ucs_status_t launches_end = UCS_OK, kernels_end = UCS_OK;
    std::function<ucs_status_t()> sets_asked = [] { return UCS_INPROGRESS; };
    std::function<void(ticket)> while_described;
    std::function<ucs_status_t()> asked = [] { return UCS_INPROGRESS; };

  private:
    bool is_usable() noexcept override { return true; }
    bool describe(const move_order &, ticket which, uint32_t (*)[order_words]) noexcept override {
        if (while_described) {
            while_described(which);
        }
        return true;
    }
    ucs_status_t launch(const mover_launch &how) noexcept override {
        if (launches_end != UCS_OK || kernels_end != UCS_OK) {
            return launches_end != UCS_OK ? launches_end : kernels_end;
        }
        launches_seen.push_back(how);
        instance = how.instance;
        return UCS_OK;
    }
    ucs_status_t ask_kernels() noexcept override { return asked(); }
    ucs_status_t launch_set(const uint32_t (*)[order_words], size_t number,
                            ticket first) noexcept override {
        if (launches_end == UCS_OK) {
            sets_seen.push_back({first, number});
        }
        return launches_end;
    }
    ucs_status_t ask_sets() noexcept override { return sets_asked(); }
};

class desk_test : public testing::Test {
  protected:
    explicit desk_test(bool always) : mover_(always) {
        order_.target = &what_;
        order_.source_base = from_;
        order_.target_base = to_;
        order_.length = 64;
    }

    size_t give(size_t number, giving how) {
        const std::vector<move_order> orders(number, order_);
        tickets_.assign(number, 0);
        given_ = mover_.give(orders.data(), number, tickets_.data(), how);
        for (mover::ticket one : tickets_) {
            next_ = std::max(next_, one + 1);
        }
        return given_.number;
    }
    size_t give_set(size_t number) {
        giving how;
        how.may_launch_set = true;
        return give(number, how);
    }
    size_t give_to_present(size_t number) {
        giving how;
        how.to_present_kernel = true;
        return give(number, how);
    }
    // The kernel says that it leaves while they are given, and later what `says` does.
    void leave_meanwhile(std::function<void(mover::ticket first)> says) {
        auto first = std::make_shared<mover::ticket>(0);
        mover_.while_described = [this, first](mover::ticket which) {
            if (*first == 0) {
                *first = which;
                mover_.say(which, true, false);
            }
        };
        mover_.asked = [this, first, says = std::move(says), times = 0]() mutable {
            if (++times == 3) {
                says(*first);
            }
            return UCS_INPROGRESS;  // thread blocks of it wait for a multiprocessor
        };
    }

    // As the kernel says it, in one piece.
    void end(mover::ticket which) {
        mover_.memory.ends[which % order_ring_size].words[0] = end_word(which, 1);
    }

    played_mover mover_;
    const layout_view what_ = contiguous_view(longest_order);
    char from_[64] = {}, to_[64] = {};  // are not touched
    move_order order_;
    std::vector<mover::ticket> tickets_;
    given given_;
    mover::ticket next_ = 1;
};

class mover_desk_test : public desk_test {
  protected:
    mover_desk_test() : desk_test(true) {}
    void SetUp() override {
        ASSERT_EQ(give(1, {}), 1u);
        ASSERT_EQ(mover_.launches_seen.size(), 1u);
        mover_.say(next_, false, false);  // the kernel is there
    }
};

TEST_F(mover_desk_test, orders_that_a_gone_kernel_has_not_seen_are_taken_back) {
    leave_meanwhile([this](mover::ticket first) { mover_.say(first, true, true); });
    EXPECT_EQ(give_to_present(2), 0u);
    EXPECT_EQ(tickets_, (std::vector<mover::ticket>{0, 0}));
    // The next kernel does not take their lines for orders.
    mover_.while_described = nullptr;
    ASSERT_EQ(give(1, {}), 1u);
    ASSERT_EQ(mover_.launches_seen.size(), 2u);
    EXPECT_EQ(mover_.launches_seen.back().first, tickets_[0]);
}

TEST_F(mover_desk_test, orders_that_a_gone_kernel_has_seen_are_kept) {
    leave_meanwhile([this](mover::ticket first) { mover_.say(first + 1, true, true); });
    EXPECT_EQ(give_to_present(3), 1u);
    EXPECT_NE(tickets_[0], 0u);
    EXPECT_EQ(tickets_[1], 0u);
    EXPECT_EQ(tickets_[2], 0u);
    EXPECT_EQ(mover_.state(tickets_[0]), UCS_INPROGRESS);
}

TEST_F(mover_desk_test, a_kernel_that_stays_after_all_keeps_its_orders) {
    leave_meanwhile([this](mover::ticket first) { mover_.say(first + 1, false, false); });
    EXPECT_EQ(give_to_present(2), 2u);
    EXPECT_NE(tickets_[0], 0u);
    EXPECT_NE(tickets_[1], 0u);
}

TEST_F(mover_desk_test, a_kernel_that_gives_up_keeps_its_orders_until_it_has_ended) {
    leave_meanwhile([this](mover::ticket) { mover_.memory.position.value = dealer_gave_up; });
    ASSERT_EQ(give_to_present(1), 1u);
    EXPECT_EQ(mover_.ask(tickets_[0]), UCS_INPROGRESS);
    mover_.asked = [] { return UCS_OK; };
    EXPECT_EQ(mover_.ask(tickets_[0]), UCS_ERR_IO_ERROR);
}

TEST_F(mover_desk_test, a_kernel_that_fails_meanwhile_fails_the_orders) {
    leave_meanwhile([](mover::ticket) {});
    mover_.asked = [] { return UCS_ERR_IO_ERROR; };
    EXPECT_EQ(give_to_present(1), 1u);
    EXPECT_EQ(mover_.state(tickets_[0]), UCS_ERR_IO_ERROR);
    EXPECT_EQ(give_to_present(1), 0u);
}

// A thread that does not progress asks for no end, and gives no ticket back.
TEST_F(mover_desk_test, an_order_that_has_ended_keeps_nobody_from_the_ring) {
    const mover::ticket idle = tickets_[0];
    const order_end_mark mark = mover_.mark_of(idle);
    EXPECT_FALSE(mark.may_show());
    end(idle);
    for (uint32_t i = 1; i < order_ring_size; ++i) {
        ASSERT_EQ(give(1, {}), 1u);
        end(tickets_[0]);
        EXPECT_EQ(mover_.state(tickets_[0]), UCS_OK);
        mover_.release(tickets_[0]);
    }
    ASSERT_EQ(give(1, {}), 1u);
    const mover::ticket later = tickets_[0];
    ASSERT_EQ(later % order_ring_size, idle % order_ring_size);
    for (bool has_ended : {false, true}) {
        EXPECT_EQ(mover_.state(later), has_ended ? UCS_OK : UCS_INPROGRESS);
        EXPECT_EQ(mover_.mark_of(later).may_show(), has_ended);
        EXPECT_EQ(mover_.state(idle), UCS_OK);
        EXPECT_EQ(mover_.ask(idle), UCS_OK);
        EXPECT_TRUE(mark.may_show());
        mover_.release(idle);
        end(later);
    }
    EXPECT_EQ(mover_.state(later), UCS_OK);
}

TEST_F(mover_desk_test, an_order_that_has_not_ended_keeps_its_place) {
    for (uint32_t i = 1; i < order_ring_size; ++i) {
        ASSERT_EQ(give(1, {}), 1u);
        end(tickets_[0]);
    }
    EXPECT_EQ(give(1, {}), 0u);
    end(1);
    EXPECT_EQ(give(1, {}), 1u);
}

// With a launch that cannot be had nobody would ever take them.
TEST_F(mover_desk_test, orders_that_come_too_late_are_taken_back_where_no_kernel_can_follow) {
    leave_meanwhile([this](mover::ticket first) { mover_.say(first + 1, true, true); });
    mover_.launches_end = UCS_ERR_NO_RESOURCE;
    EXPECT_EQ(give(3, {}), 1u) << "the kernel had seen the first";
    EXPECT_NE(tickets_[0], 0u);
    EXPECT_EQ(tickets_[1], 0u);
    EXPECT_EQ(tickets_[2], 0u);
    EXPECT_EQ(mover_.state(tickets_[0]), UCS_INPROGRESS);
    // And a set is launched in place of the next kernel.
    giving how;
    how.may_launch_set = true;
    mover_.while_described = nullptr;
    mover_.launches_end = UCS_OK;
    mover_.kernels_end = UCS_ERR_NO_RESOURCE;
    EXPECT_EQ(give(2, how), 2u);
    EXPECT_TRUE(given_.launched_set);
}

// Many long moves are quicker by launches. Short ones beside them are taken all the same.
TEST_F(mover_desk_test, few_long_orders_are_taken_at_a_time) {
    order_.length = most_together / 2;
    ASSERT_EQ(give(1, {}), 1u);
    const mover::ticket first = tickets_[0];
    ASSERT_EQ(give(1, {}), 1u);
    const mover::ticket second = tickets_[0];
    EXPECT_EQ(give(1, {}), 0u);
    order_.length = longest_of_many;
    EXPECT_EQ(give(1, {}), 1u) << "not a long one";
    order_.length = most_together / 2;
    // Their owner may compute, and ask for no end.
    end(second);
    EXPECT_EQ(give(2, {}), 0u) << "all or none";
    EXPECT_EQ(give(1, {}), 1u);
    EXPECT_EQ(give(1, {}), 0u);
    EXPECT_EQ(mover_.state(second), UCS_OK);
    EXPECT_EQ(mover_.ask(second), UCS_OK);
    mover_.release(second);
    EXPECT_EQ(give(1, {}), 0u) << "it counts once";
    end(first);
    mover_.release(first);
    EXPECT_EQ(give(1, {}), 1u);
}

TEST_F(mover_desk_test, lists_with_tables_count_as_long_sooner) {
    layout_view listed = what_;
    listed.num_blocks = 3;
    order_.source = &listed;
    order_.length = most_together / 2;
    ASSERT_EQ(give(2, {}), 2u);
    order_.length = longest_listed_of_many + 1;
    EXPECT_EQ(give(1, {}), 0u);
    order_.length = longest_listed_of_many;
    EXPECT_EQ(give(1, {}), 1u);
}

TEST_F(mover_desk_test, who_waits_for_one_that_has_failed_waits_in_vain) {
    leave_meanwhile([](mover::ticket) {});
    mover_.asked = [] { return UCS_ERR_IO_ERROR; };
    give_to_present(1);
    mover_.say(next_, true, true);
    EXPECT_TRUE(mover_.takes_at_once()) << "others need not be gathered: none is taken";
}

// By which the kernel tells what has happened since then from what was long ago.
TEST_F(mover_desk_test, a_launch_says_the_pulse_of_the_order_before) {
    mover_.memory.stay.pulse = 5;
    ASSERT_EQ(give(1, {}), 1u);
    mover_.say(next_, true, true);
    mover_.memory.stay.pulse = 9;
    ASSERT_EQ(give(1, {}), 1u);
    ASSERT_EQ(mover_.launches_seen.size(), 2u);
    EXPECT_EQ(mover_.launches_seen.back().pulse, 5u);
}

// Orders for which no kernel is there.
class order_set_test : public desk_test {
  protected:
    order_set_test() : desk_test(false) {}
    // Orders come so often that one of them launches the kernel; its ticket.
    mover::ticket launch_kernel() {
        for (int tries = 0; tries < 1000 && give(1, {}) == 0; ++tries) {
        }
        EXPECT_EQ(mover_.launches_seen.size(), 1u);
        return tickets_[0];
    }
};

TEST_F(order_set_test, several_that_find_no_kernel_are_one_launch) {
    ASSERT_EQ(give_set(3), 3u);
    EXPECT_TRUE(given_.launched_set);
    ASSERT_EQ(mover_.sets_seen.size(), 1u);
    EXPECT_EQ(mover_.sets_seen[0].number, 3u);
    EXPECT_TRUE(mover_.launches_seen.empty());
    for (size_t i : {1, 2, 0}) {
        EXPECT_EQ(tickets_[i], mover_.sets_seen[0].first + i);
        EXPECT_EQ(mover_.state(tickets_[i]), UCS_INPROGRESS);
        EXPECT_EQ(mover_.ask(tickets_[i]), UCS_INPROGRESS);
        EXPECT_FALSE(mover_.mark_of(tickets_[i]).may_show());
        end(tickets_[i]);
        EXPECT_EQ(mover_.state(tickets_[i]), UCS_OK);
        EXPECT_TRUE(mover_.mark_of(tickets_[i]).may_show());
        mover_.release(tickets_[i]);
    }
}

// What has no set. Few orders: many would be a burst, which launches the kernel.
TEST_F(order_set_test, one_by_itself_and_who_does_not_ask_have_launches_of_their_own) {
    EXPECT_EQ(give_set(1), 0u);
    EXPECT_EQ(give(2, {}), 0u);
    EXPECT_EQ(tickets_, (std::vector<mover::ticket>{0, 0}));
    EXPECT_TRUE(mover_.sets_seen.empty());
}

TEST_F(order_set_test, long_ones_are_left_and_so_is_more_than_one_launch_holds) {
    EXPECT_EQ(give_set(most_of_set + 1), 0u);
    played_mover other(false);
    std::vector<move_order> orders(4, order_);
    orders[0].length = orders[2].length = longest_of_many + 1;
    orders[3].length = longest_of_many;
    std::vector<mover::ticket> tickets(orders.size());
    giving how;
    how.may_launch_set = true;
    EXPECT_EQ(other.give(orders.data(), orders.size(), tickets.data(), how).number, 2u);
    EXPECT_EQ(tickets, (std::vector<mover::ticket>{0, 1, 0, 2}));
}

TEST_F(order_set_test, a_kernel_that_comes_behind_one_begins_behind_it) {
    ASSERT_EQ(give_set(2), 2u);
    const mover::ticket first = tickets_[0], its = launch_kernel();
    EXPECT_EQ(its, first + 2);
    EXPECT_EQ(mover_.launches_seen[0].first, its);
}

// It may take an order after all, and stay: for tickets that nobody writes it would wait in vain.
TEST_F(order_set_test, while_a_kernel_leaves_there_is_none) {
    const mover::ticket taken = launch_kernel();
    mover_.say(taken, true, false);
    mover_.kernels_end = UCS_ERR_NO_MEMORY;
    EXPECT_EQ(give_set(2), 0u);
    EXPECT_TRUE(mover_.sets_seen.empty());
    mover_.say(taken + 1, true, true);
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(give_set(2), 2u) << "in place of the kernel that could not be launched";
        EXPECT_TRUE(given_.launched_set);
    }
}

TEST_F(order_set_test, where_the_kernel_is_there_orders_go_to_it) {
    EXPECT_FALSE(mover_.takes_at_once());
    mover_.say(next_, false, false);
    EXPECT_TRUE(mover_.takes_at_once());
    mover_.say(next_, true, true);
    EXPECT_FALSE(mover_.takes_at_once());
    launch_kernel();
    EXPECT_TRUE(mover_.takes_at_once()) << "the first of a burst does not wait for others";
    mover_.say(next_, false, false);
    EXPECT_EQ(give_set(2), 2u);
    EXPECT_FALSE(given_.launched_set);
    EXPECT_TRUE(mover_.sets_seen.empty());
}

TEST_F(order_set_test, one_goes_on_where_orders_that_no_kernel_takes_are_taken_back) {
    ASSERT_EQ(give_set(2), 2u);
    const mover::ticket of_set = tickets_[0], of_kernel = launch_kernel();
    mover_.asked = [] { return UCS_OK; };  // it has left, and not taken it
    mover_.launches_end = UCS_ERR_NO_MEMORY;
    EXPECT_EQ(mover_.ask(of_kernel), UCS_ERR_CANCELED);
    EXPECT_EQ(mover_.state(of_set), UCS_INPROGRESS);
    EXPECT_EQ(mover_.ask(of_set), UCS_INPROGRESS);
    end(of_set);
    EXPECT_EQ(mover_.ask(of_set), UCS_OK);
}

// A user's buffer must stay as long as a kernel reads it.
TEST_F(order_set_test, one_goes_on_where_the_mover_fails) {
    ASSERT_EQ(give_set(2), 2u);
    const mover::ticket first = tickets_[0], second = tickets_[1], of_kernel = launch_kernel();
    mover_.asked = [] { return UCS_ERR_IO_ERROR; };
    EXPECT_EQ(mover_.ask(of_kernel), UCS_ERR_IO_ERROR);
    EXPECT_EQ(mover_.state(first), UCS_INPROGRESS);
    EXPECT_EQ(mover_.ask(first), UCS_INPROGRESS);
    end(first);
    EXPECT_EQ(mover_.state(first), UCS_OK);
    mover_.sets_asked = [] { return UCS_ERR_IO_ERROR; };
    EXPECT_EQ(mover_.ask(second), UCS_ERR_IO_ERROR);
}

TEST_F(order_set_test, one_that_fails_leaves_the_kernel_its_orders) {
    ASSERT_EQ(give_set(2), 2u);
    const mover::ticket of_set = tickets_[0], taken = launch_kernel();
    mover_.say(next_, false, false);
    ASSERT_EQ(give(1, {}), 1u);
    const mover::ticket untaken = tickets_[0];
    mover_.sets_asked = [] { return UCS_ERR_IO_ERROR; };
    EXPECT_EQ(mover_.ask(of_set), UCS_ERR_IO_ERROR);
    EXPECT_EQ(mover_.state(taken), UCS_INPROGRESS);
    EXPECT_EQ(mover_.ask(taken), UCS_INPROGRESS);
    end(taken);
    EXPECT_EQ(mover_.state(taken), UCS_OK);
    // It leaves, and no other follows.
    mover_.memory.position.value = untaken;
    mover_.asked = [] { return UCS_OK; };
    EXPECT_EQ(mover_.ask(untaken), UCS_ERR_CANCELED);
    EXPECT_EQ(mover_.launches_seen.size(), 1u);
    EXPECT_EQ(give(1, {}), 0u);
}

TEST_F(order_set_test, one_that_cannot_be_launched_leaves_no_trace) {
    mover_.launches_end = UCS_ERR_NO_MEMORY;
    EXPECT_EQ(give_set(2), 0u);
    EXPECT_EQ(tickets_, (std::vector<mover::ticket>{0, 0}));
    mover_.launches_end = UCS_OK;
    ASSERT_EQ(give_set(2), 2u);
    EXPECT_EQ(tickets_, (std::vector<mover::ticket>{1, 2}));
}

// Hours of orders by sets alone, since a kernel was there.
TEST_F(order_set_test, a_kernel_that_left_long_ago_is_still_missing) {
    for (const uint64_t numbers : {uint64_t{1} << 31, uint64_t{3} << 30, uint64_t{1} << 32}) {
        played_mover other(false);
        other.begin_with(numbers + 10);
        mover::ticket tickets[2];
        giving how;
        how.may_launch_set = true;
        const move_order orders[] = {order_, order_};
        EXPECT_TRUE(other.give(orders, 2, tickets, how).launched_set);
        EXPECT_EQ(tickets[1], numbers + 11);
    }
}

TEST_F(order_set_test, a_line_from_before_numbers_came_round_is_not_taken_for_a_new_order) {
    constexpr uint64_t round = uint64_t{1} << 32;
    const mover::ticket old = 6;
    for (order_part &part : mover_.memory.lines[old].parts) {
        part.tag = order_tag(old);
    }
    mover_.begin_with(round - 1);
    while (next_ <= round + old) {
        ASSERT_EQ(give_set(2), 2u);
        mover_.say(next_, true, true);
    }
    for (const order_part &part : mover_.memory.lines[old].parts) {
        EXPECT_NE(part.tag, order_tag(round + old));
    }
}

// As it takes the CPU as long as the set itself.
TEST_F(order_set_test, no_kernel_is_launched_again_and_again_behind_sets_that_need_none) {
    for (int i = 0; i < 100; ++i) {
        const auto begun = std::chrono::steady_clock::now();
        while (std::chrono::steady_clock::now() - begun < std::chrono::microseconds(30)) {
        }
        give_set(2);
        mover_.expect();
        mover_.say(next_, true, true);  // one that was launched has come, and gone
        for (mover::ticket one : tickets_) {
            end(one);
        }
    }
    if (mover_.launches_seen.empty()) {
        GTEST_SKIP() << "this machine is too busy for a kernel to pay";
    }
    EXPECT_GT(mover_.sets_seen.size(), 90u);
    EXPECT_LE(mover_.launches_seen.size(), 10u);
}

TEST_F(order_set_test, one_that_ends_and_tells_nothing_fails_the_mover) {
    ASSERT_EQ(give_set(2), 2u);
    const mover::ticket first = tickets_[0], second = tickets_[1];
    end(first);
    mover_.sets_asked = [] { return UCS_OK; };
    EXPECT_EQ(mover_.ask(first), UCS_OK);
    EXPECT_EQ(mover_.ask(second), UCS_ERR_IO_ERROR);
    EXPECT_EQ(mover_.state(first), UCS_OK);
    EXPECT_EQ(give_set(2), 0u);
}

}  // namespace
}  // namespace cuda_nc::gpu
