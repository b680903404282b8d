#include "uct/cuda_nc/memory/ring.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "ucs/base/settings.hpp"

namespace cuda_nc::uct {
namespace {

// On GPUs, and in host memory.
class ring_test : public testing::TestWithParam<bool> {
  protected:
    void SetUp() override {
        if (gpu::platform::instance().num_devices() == 0) {
            GTEST_SKIP() << "no GPU, not even a simulated one";
        }
        lent_ = regions_lent();
        lendable_ = left();
    }
    void TearDown() override {
        for (const ring &one : taken_) {
            release_region(one.memory);
        }
        EXPECT_EQ(regions_lent(), lent_);
        EXPECT_TRUE(IsSkipped() || left() == lendable_);
    }
    size_t left() const { return on_host_ ? lendable_on_host() : lendable(); }
    const ring &take(uint64_t bytes, bool same_gpu) {
        ring one = acquire_ring(0, bytes, same_gpu, on_host_);
        if (one && one.on_host && !on_host_) {  // none is left on the GPU
            release_region(one.memory);
            return none_;
        }
        if (one) {
            EXPECT_GE(one.memory.size, one.num_slots * one.slot_size);
            EXPECT_GE(one.slot_size, 1u);
            taken_.push_back(one);
        }
        return one ? taken_.back() : none_;
    }

    const ring none_;
    std::vector<ring> taken_;
    size_t lent_ = 0, lendable_ = 0;
    const bool on_host_ = GetParam();
};

INSTANTIATE_TEST_SUITE_P(all, ring_test, testing::Bool(), testing::PrintToStringParamName());

TEST_P(ring_test, a_message_goes_in_four_turns) {
    for (uint64_t bytes : {524287, 524288, 524289, 524290, 524291, 1 << 20, (1 << 20) + 3}) {
        const ring &one = take(bytes, false);
        ASSERT_TRUE(one);
        EXPECT_GE(one.num_slots * one.slot_size, bytes);
    }
}

TEST_P(ring_test, between_gpus_slots_overlap) {
    for (uint64_t bytes : {uint64_t(1), uint64_t(1) << 20, uint64_t(64) << 20}) {
        const ring &one = take(bytes, false);
        ASSERT_TRUE(one);
        EXPECT_EQ(one.num_slots, ring::most_slots);
        EXPECT_LE(one.slot_size, size_t(4) << 20);
    }
}

TEST_P(ring_test, on_one_gpu_a_message_takes_one_turn) {
    for (uint64_t bytes = 1; bytes <= lendable_ / 4; bytes = bytes * 7 + 1) {
        const ring &one = take(bytes, true);
        ASSERT_TRUE(one) << bytes;
        EXPECT_EQ(one.num_slots, 1u);
        EXPECT_GE(one.slot_size, bytes);
        EXPECT_LT(one.slot_size, bytes * 2 + (size_t(64) << 10)) << "no more than it needs";
        release_region(one.memory);
        taken_.pop_back();
    }
}

TEST_P(ring_test, long_messages_on_one_gpu_leave_memory_to_others) {
    size_t before = SIZE_MAX;
    unsigned messages = 0;
    for (; messages < 1000; ++messages) {
        const size_t before_it = left();
        const ring &one = take(uint64_t(1) << 40, true);
        if (!one) {
            break;
        }
        EXPECT_LE(one.memory.size, std::max(before_it / 2, size_t(64) << 10));
        EXPECT_LE(one.slot_size, before);
        before = one.slot_size;
        ASSERT_LE(left(), before_it);
    }
    EXPECT_GE(messages, 3u);
    EXPECT_LT(messages, 1000u) << "bounded";
}

}  // namespace
}  // namespace cuda_nc::uct
