// The simulated GPU's mover where it fails, and where the GPU or the process goes away.
#include "ucs/gpu/mover.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <vector>

#include "ucs/backend/sim/sim_fixture.hpp"
#include "ucs/gpu/mover_desk.hpp"
#include "ucs/gpu/mover_pulse.hpp"

namespace cuda_nc::gpu::test {
namespace {

class sim_mover_test : public gpu_sim {
  protected:
    void start_with(const std::string &faults) {
        sim::options how;
        how.memory = 16 << 20;
        how.faults = faults;
        start_with(how);
    }
    void start_with(const sim::options &how) {
        start(how);
        mover_ = device_->get_mover();
        ASSERT_NE(mover_, nullptr);
        from_ = allocate(bytes);
        to_ = allocate(bytes);
        what_ = contiguous_view(bytes);
        order_.source_base = from_->address();
        order_.target = &what_;
        order_.target_base = to_->address();
        order_.length = bytes;
    }
    ucs_status_t await(mover::ticket which) {
        ucs_status_t status = UCS_INPROGRESS;
        const auto begun = std::chrono::steady_clock::now();
        while (status == UCS_INPROGRESS) {
            status = mover_->state(which);
            if (status == UCS_INPROGRESS &&
                std::chrono::steady_clock::now() - begun > std::chrono::milliseconds(5)) {
                status = mover_->ask(which);
            }
            std::this_thread::yield();
        }
        return status;
    }
    // Gives one order and waits for it. UCS_ERR_NO_RESOURCE: it was not taken.
    ucs_status_t move() {
        mover::ticket its = 0;
        if (mover_->give(&order_, 1, &its).number == 0) {
            return UCS_ERR_NO_RESOURCE;
        }
        const ucs_status_t status = await(its);
        mover_->release(its);
        return status;
    }

    void copy(char *to, const char *from, size_t length) {
        ASSERT_EQ(stream_->copy(to, from, length), UCS_OK);
        ASSERT_EQ(finish(*stream_), UCS_OK);
    }

    static constexpr size_t bytes = 4096;
    mover *mover_ = nullptr;
    std::unique_ptr<memory> from_, to_;
    layout_view what_;
    move_order order_;
};

TEST_F(sim_mover_test, where_it_cannot_be_launched_nothing_is_taken) {
    start_with("mover:1,mover:2");
    EXPECT_EQ(move(), UCS_ERR_NO_RESOURCE);
    EXPECT_EQ(move(), UCS_ERR_NO_RESOURCE);
    EXPECT_EQ(move(), UCS_OK) << "the third launch succeeds";
}

// Some launches fail after the first: each order is taken, given back or moved, and none is lost.
TEST_F(sim_mover_test, orders_that_no_kernel_takes_are_given_back) {
    start_with("mover:2+");
    // Not OK where the kernel was gone before the line was written.
    auto is_moved_or_given_back = [](ucs_status_t status) {
        return status == UCS_OK || status == UCS_ERR_NO_RESOURCE || status == UCS_ERR_CANCELED;
    };
    EXPECT_PRED1(is_moved_or_given_back, move());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    mover_->leave();
    int given_back = 0;
    for (int i = 0; i < 200; ++i) {
        const ucs_status_t status = move();
        EXPECT_PRED1(is_moved_or_given_back, status);
        given_back += status != UCS_OK ? 1 : 0;
    }
    EXPECT_GT(given_back, 0);
    EXPECT_EQ(move(), UCS_ERR_NO_RESOURCE);
}

TEST_F(sim_mover_test, a_kernel_that_dies_fails_its_orders_and_takes_no_more) {
    start_with("mover_dies:1");
    std::vector<mover::ticket> tickets(64);
    size_t given = 0;
    while (given < tickets.size() && mover_->give(&order_, 1, tickets.data() + given).number == 1) {
        ++given;
    }
    ASSERT_GT(given, 0u);
    int failed = 0;
    for (size_t i = 0; i < given; ++i) {
        const ucs_status_t status = await(tickets[i]);
        EXPECT_TRUE(status == UCS_OK || status == UCS_ERR_IO_ERROR) << status_text(status);
        failed += status != UCS_OK ? 1 : 0;
        mover_->release(tickets[i]);
    }
    EXPECT_GT(failed, 0);
    EXPECT_EQ(move(), UCS_ERR_NO_RESOURCE);
}

TEST_F(sim_mover_test, what_is_not_served_does_not_hold_up_the_orders_behind_it) {
    start_with("");
    std::vector<move_order> orders(5, order_);
    orders[0].length = orders[3].length = 0;
    mover::ticket tickets[5] = {9, 9, 9, 9, 9};
    ASSERT_EQ(mover_->give(orders.data(), 5, tickets).number, 3u);
    for (size_t i : {0, 3}) {
        EXPECT_EQ(tickets[i], 0u);
    }
    for (size_t i : {1, 2, 4}) {
        ASSERT_NE(tickets[i], 0u);
        EXPECT_EQ(await(tickets[i]), UCS_OK);
        mover_->release(tickets[i]);
    }
}

TEST_F(sim_mover_test, an_illegal_access_fails_the_order) {
    start_with("");
    order_.source_base += 1;  // one byte beyond its allocation
    EXPECT_EQ(move(), UCS_ERR_IO_ERROR);
    order_.source_base -= 1;
    EXPECT_EQ(move(), UCS_ERR_NO_RESOURCE);
}

TEST_F(sim_mover_test, an_order_that_lands_elsewhere_than_it_says_fails) {
    start_with("");
    order_.into_own_memory = true;
    EXPECT_EQ(move(), UCS_OK);
    const std::unique_ptr<memory> pinned = allocate_pinned(4 * bytes);
    order_.target_base = pinned->address();
    EXPECT_EQ(move(), UCS_ERR_IO_ERROR);
}

TEST_F(sim_mover_test, a_kernel_that_waits_long_for_its_turn_is_waited_for) {
    start_with("mover_late:1");
    EXPECT_EQ(move(), UCS_OK);
}

TEST_F(sim_mover_test, it_can_end_with_orders_outstanding) {
    start_with("mover_late:1");
    mover::ticket its = 0;
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(mover_->give(&order_, 1, &its).number, 1u);
    }
    // the platform ends here
}

// As on real GPUs: work is launched until orders come close together, and then a kernel is there.
TEST_F(sim_mover_test, orders_are_taken_when_they_have_come_often) {
    sim::options how;
    how.memory = 16 << 20;
    how.mover_idle = 1000;
    how.mover_always = false;
    start_with(how);
    EXPECT_EQ(move(), UCS_ERR_NO_RESOURCE);
    mover_->expect();
    EXPECT_EQ(move(), UCS_ERR_NO_RESOURCE) << "one order says nothing";
    int tries = 0;
    for (; move() != UCS_OK && tries < 100000; ++tries) {
        mover_->expect();
        std::this_thread::yield();
    }
    EXPECT_GE(tries, 3);
    EXPECT_LT(tries, 100000);
}

// The idle time is not over, but the process does something else.
TEST_F(sim_mover_test, the_kernel_leaves_when_the_pulse_stands_still) {
    using clock = std::chrono::steady_clock;
    sim::options how;
    how.memory = 16 << 20;
    how.mover_idle = 1000;
    start_with(how);
    auto &desk = static_cast<mover_desk &>(*mover_);
    // On a machine that is busy the threads do not see each other in time.
    bool has_left = false;
    unsigned in_time = 0;
    for (const auto limit = clock::now() + std::chrono::seconds(20);
         !has_left && clock::now() < limit;) {
        // A kernel that has been launched here, and so neither its idle time nor its stay is over.
        const auto begun = clock::now();
        const uint32_t none = desk.launches();
        EXPECT_EQ(move(), UCS_OK);
        const uint32_t before = desk.launches();
        if (before == none) {
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
            continue;
        }
        beat_pulses(beat::progress);
        std::this_thread::sleep_for(std::chrono::microseconds(300));
        EXPECT_EQ(move(), UCS_OK);
        const bool is_in_time = clock::now() - begun < std::chrono::microseconds(900);
        in_time += is_in_time;
        has_left = is_in_time && desk.launches() != before;
    }
    if (!has_left && in_time < 100) {
        GTEST_SKIP() << "this machine is too busy to tell";
    }
    EXPECT_TRUE(has_left);
}

// A kernel that leaves at that very moment: no other one is launched for the order, which is moved
// or given back, and then never touched.
TEST_F(sim_mover_test, an_order_for_a_present_kernel_is_given_back_where_that_leaves) {
    using clock = std::chrono::steady_clock;
    sim::options how;
    how.memory = 16 << 20;
    how.mover_idle = 1;
    start_with(how);
    giving present;
    present.to_present_kernel = true;
    std::vector<char> bytes_of(bytes, 'a'), seen(bytes);
    copy(from_->address(), bytes_of.data(), bytes);
    int given_back = 0;
    for (const auto limit = clock::now() + std::chrono::seconds(20);
         given_back < 5 && clock::now() < limit;) {
        std::fill(bytes_of.begin(), bytes_of.end(), '.');
        copy(to_->address(), bytes_of.data(), bytes);
        ASSERT_EQ(move(), UCS_OK);  // the kernel is there
        copy(to_->address(), bytes_of.data(), bytes);
        mover::ticket its = 0;
        const bool is_taken = mover_->give(&order_, 1, &its, present).number == 1;
        if (is_taken) {
            ASSERT_EQ(await(its), UCS_OK);
            mover_->release(its);
        } else {
            ASSERT_EQ(its, 0u);
            ++given_back;
            order_.target_base = from_->address();
            ASSERT_EQ(move(), UCS_OK) << "the next kernel moves other orders";
            order_.target_base = to_->address();
        }
        copy(seen.data(), to_->address(), bytes);
        ASSERT_EQ(seen, std::vector<char>(bytes, is_taken ? 'a' : '.'));
    }
    if (given_back == 0) {
        GTEST_SKIP() << "no kernel left at such a moment";
    }
}

TEST_F(sim_mover_test, setting_it_off_leaves_none) {
    sim::options how;
    how.memory = 16 << 20;
    how.mover_idle = 0;
    start(how);
    EXPECT_EQ(device_->get_mover(), nullptr);
}

}  // namespace
}  // namespace cuda_nc::gpu::test
