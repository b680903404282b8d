// What becomes of orders for a kernel that is there alone, where it leaves while they are given:
// over a kernel that the test plays. It never ends unless the test says so.
#include "ucs/gpu/mover_desk.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <algorithm>
#include <memory>
#include <vector>

#include "ucs/layout/layout_view.hpp"

namespace cuda_nc::gpu {
namespace {

class played_mover final : public mover_desk {
  public:
    played_mover() : mover_desk(50, true, 0) {
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

    alignas(mover_memory) mover_memory memory = {};
    uint32_t instance = 0;
    std::vector<mover_launch> launches_seen;
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
        launches_seen.push_back(how);
        instance = how.instance;
        return UCS_OK;
    }
    ucs_status_t ask_kernels() noexcept override { return asked(); }
};

class mover_desk_test : public testing::Test {
  protected:
    void SetUp() override {
        order_.target = &what_;
        order_.source_base = from_;
        order_.target_base = to_;
        order_.length = 64;
        ASSERT_EQ(give(1, {}), 1u);
        ASSERT_EQ(mover_.launches_seen.size(), 1u);
        mover_.say(next_, false, false);  // the kernel is there
    }

    size_t give(size_t number, giving how) {
        const std::vector<move_order> orders(number, order_);
        tickets_.assign(number, 0);
        const size_t count = mover_.give(orders.data(), number, tickets_.data(), how);
        for (mover::ticket one : tickets_) {
            next_ = std::max(next_, one + 1);
        }
        return count;
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
    const layout_view what_ = contiguous_view(64);
    char from_[64] = {}, to_[64] = {};
    move_order order_;
    std::vector<mover::ticket> tickets_;
    mover::ticket next_ = 1;
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
    leave_meanwhile([this](mover::ticket) { mover_.memory.position.value = mover_gave_up; });
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

// By which the kernel tells what has happened since then from what was long ago.
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

TEST_F(mover_desk_test, a_launch_says_the_pulse_of_the_order_before) {
    mover_.memory.stay.pulse = 5;
    ASSERT_EQ(give(1, {}), 1u);
    mover_.say(next_, true, true);
    mover_.memory.stay.pulse = 9;
    ASSERT_EQ(give(1, {}), 1u);
    ASSERT_EQ(mover_.launches_seen.size(), 2u);
    EXPECT_EQ(mover_.launches_seen.back().pulse, 5u);
}

}  // namespace
}  // namespace cuda_nc::gpu
