// Orders and their end, on the simulated GPU.
#include "ucs/gpu/given_orders.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "ucs/backend/sim/sim_fixture.hpp"
#include "ucs/gpu/order_ring.hpp"

namespace cuda_nc::gpu::test {
namespace {

class given_orders_test : public gpu_sim {
  protected:
    void start_with(const std::string &faults, bool has_mover = true) {
        sim::options how;
        how.memory = 16 << 20;
        how.faults = faults;
        how.mover_idle = has_mover ? how.mover_idle : 0;
        start(how);
        from_ = allocate(bytes);
        ASSERT_EQ(device_->allocate_pinned(bytes, &to_), UCS_OK);
        layout_view &rows = work_.layout;
        rows = contiguous_view(row);
        rows.kind = shape::strided;
        rows.num_dims = 1;
        rows.dims[0] = {bytes / (2 * row), 2 * row};
        rows.by_dim[0] = fast_divide(rows.dims[0].count);
        rows.packed_size = work_.length = bytes / 2;
        work_.dir = direction::pack;
        work_.base = from_->address();
        work_.packed = to_->address();
    }

    static constexpr size_t bytes = 8192, row = 64;
    std::unique_ptr<memory> from_, to_;
    transfer work_;
};

TEST_F(given_orders_test, packs_into_pinned_memory_and_says_its_end_as_often_as_asked) {
    start_with("");
    given_orders one;
    EXPECT_FALSE(one.is_given());
    EXPECT_EQ(one.await(), UCS_OK);
    ASSERT_TRUE(one.give(*device_, work_));
    EXPECT_TRUE(one.is_given());
    EXPECT_EQ(one.await(), UCS_OK);
    EXPECT_EQ(one.query(), UCS_OK);
    EXPECT_TRUE(one.is_given());
    one.forget();
    EXPECT_FALSE(one.is_given());
}

// More than the ring has places for: each place comes back.
TEST_F(given_orders_test, the_place_in_the_ring_comes_back) {
    start_with("");
    for (int i = 0; i < 600; ++i) {
        given_orders one;
        ASSERT_TRUE(one.give(*device_, work_)) << i;
        if (i % 3 != 0) {
            ASSERT_EQ(one.await(), UCS_OK);
        }
    }
}

TEST_F(given_orders_test, several_end_together) {
    start_with("");
    const std::unique_ptr<memory> source = allocate_pinned(bytes);
    char *from = source->address(), *to = to_->address();
    for (size_t i = 0; i < bytes; ++i) {
        from[i] = static_cast<char>(i % 251 + 1);
        to[i] = 0;
    }
    constexpr uint64_t length = 100, distance = 300;
    const layout_view packed = contiguous_view(length);
    move_order orders[given_orders::most];
    for (size_t i = 0; i < given_orders::most; ++i) {
        orders[i].target = &packed;
        orders[i].target_base = to + i * distance;
        orders[i].source_base = from + i * distance;
        orders[i].length = length - i;
    }
    given_orders all;
    ASSERT_TRUE(all.give(*device_, orders, given_orders::most));
    EXPECT_EQ(all.await(), UCS_OK);
    for (size_t i = 0; i < bytes; ++i) {
        const bool moved =
            i < given_orders::most * distance && i % distance < length - i / distance;
        ASSERT_EQ(to[i], moved ? from[i] : 0) << i;
    }
}

// An order that ends leaves room. These take the simulated mover much longer than it takes to give
// all of them.
TEST_F(given_orders_test, where_the_ring_has_no_room_for_all_they_are_to_be_launched) {
    start_with("");
    const size_t length = 64 << 10;
    const std::unique_ptr<memory> source = allocate(2 * length), target = allocate_pinned(length);
    layout_view blocks = contiguous_view(8);
    blocks.kind = shape::strided;
    blocks.num_dims = 1;
    blocks.dims[0] = {length / 8, 16};
    blocks.by_dim[0] = fast_divide(blocks.dims[0].count);
    blocks.packed_size = length;
    const layout_view packed = contiguous_view(length);
    move_order orders[given_orders::most];
    for (move_order &one : orders) {
        one.source = &blocks;
        one.source_base = source->address();
        one.target = &packed;
        one.target_base = target->address();
        one.length = length;
    }
    ucs_status_t last = UCS_OK;
    for (int tries = 0; tries < 10 && last == UCS_OK; ++tries) {  // this thread may be put off
        std::vector<std::unique_ptr<given_orders>> before;
        constexpr size_t room = 10;
        for (size_t left = order_ring_size - room; left != 0;) {
            const size_t now = std::min(left, given_orders::most);
            before.push_back(std::make_unique<given_orders>());
            ASSERT_TRUE(before.back()->give(*device_, orders, now));
            left -= now;
        }
        given_orders some;
        ASSERT_TRUE(some.give(*device_, orders, given_orders::most));
        last = some.await();
        for (const auto &one : before) {
            ASSERT_EQ(one->await(), UCS_OK);
        }
    }
    EXPECT_EQ(last, UCS_ERR_CANCELED);
    given_orders all;
    ASSERT_TRUE(all.give(*device_, orders, given_orders::most));
    EXPECT_EQ(all.await(), UCS_OK);
}

TEST_F(given_orders_test, without_a_mover_nothing_is_taken) {
    start_with("", false);
    given_orders one;
    EXPECT_FALSE(one.give(*device_, work_));
    EXPECT_FALSE(one.is_given());
    given_orders::launched_instead(*device_);
}

TEST_F(given_orders_test, a_mover_that_dies_is_told_of) {
    start_with("mover_dies:1");
    ucs_status_t status = UCS_OK;
    for (int i = 0; i < 100 && status == UCS_OK; ++i) {
        given_orders one;
        if (!one.give(*device_, work_)) {
            break;
        }
        status = one.await();
    }
    EXPECT_EQ(status, UCS_ERR_IO_ERROR);
    given_orders later;
    EXPECT_FALSE(later.give(*device_, work_));
}

}  // namespace
}  // namespace cuda_nc::gpu::test
