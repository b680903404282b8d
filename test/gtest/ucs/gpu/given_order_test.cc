// One order and its end, on the simulated GPU.
#include "ucs/gpu/given_order.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "ucs/backend/sim/sim_fixture.hpp"

namespace cuda_nc::gpu::test {
namespace {

class given_order_test : public gpu_sim {
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

TEST_F(given_order_test, packs_into_pinned_memory_and_says_its_end_as_often_as_asked) {
    start_with("");
    given_order one;
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
TEST_F(given_order_test, the_place_in_the_ring_comes_back) {
    start_with("");
    for (int i = 0; i < 600; ++i) {
        given_order one;
        ASSERT_TRUE(one.give(*device_, work_)) << i;
        if (i % 3 != 0) {
            ASSERT_EQ(one.await(), UCS_OK);
        }
    }
}

TEST_F(given_order_test, without_a_mover_nothing_is_taken) {
    start_with("", false);
    given_order one;
    EXPECT_FALSE(one.give(*device_, work_));
    EXPECT_FALSE(one.is_given());
    given_order::launched_instead(*device_);
}

TEST_F(given_order_test, a_mover_that_dies_is_told_of) {
    start_with("mover_dies:1");
    ucs_status_t status = UCS_OK;
    for (int i = 0; i < 100 && status == UCS_OK; ++i) {
        given_order one;
        if (!one.give(*device_, work_)) {
            break;
        }
        status = one.await();
    }
    EXPECT_EQ(status, UCS_ERR_IO_ERROR);
    given_order later;
    EXPECT_FALSE(later.give(*device_, work_));
}

}  // namespace
}  // namespace cuda_nc::gpu::test
