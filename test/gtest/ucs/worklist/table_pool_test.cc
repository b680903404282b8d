// The GPU memory of work lists, on the GPU that the process has, simulated or real.
#include "ucs/worklist/table_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace cuda_nc::worklist {
namespace {

class table_pool_test : public testing::Test {
  protected:
    void SetUp() override {
        gpu::platform &all = gpu::platform::instance();
        if (all.num_devices() == 0) {
            GTEST_SKIP() << "no GPU, simulated or real";
        }
        pool_ = std::make_unique<table_pool>(*all.get_device(0));
    }

    std::unique_ptr<table_memory> acquire(size_t size) {
        auto made = std::make_unique<table_memory>();
        EXPECT_EQ(pool_->acquire(size, *made), UCS_OK);
        return made;
    }

    std::unique_ptr<table_pool> pool_;
};

TEST_F(table_pool_test, small_lists_share_an_allocation) {
    std::vector<std::unique_ptr<table_memory>> held;
    for (int i = 0; i < 2048; ++i) {  // 1 MiB in all
        held.push_back(acquire(300));
        EXPECT_EQ(held.back()->size(), 512u);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(held.back()->address()) % table_pool::alignment, 0u);
    }
    EXPECT_EQ(pool_->num_shared(), 1u);
    held.clear();
    held.push_back(acquire(size_t{64} << 10));  // what was given back is one piece again
    EXPECT_EQ(pool_->num_shared(), 1u);
}

TEST_F(table_pool_test, large_lists_have_allocations_of_their_own) {
    auto large = acquire(size_t{2} << 20);
    EXPECT_NE(large->address(), nullptr);
    EXPECT_EQ(pool_->num_shared(), 0u);
}

// Work whose end nobody sees may still write there.
TEST_F(table_pool_test, what_is_kept_for_ever_is_not_lent_again) {
    auto other = acquire(300);  // keeps the allocation
    auto kept = acquire(300);
    const char *const at = kept->address();
    kept->keep_for_ever();
    EXPECT_EQ(kept->address(), at);
    kept.reset();
    for (int i = 0; i < 1000; ++i) {
        other = acquire(300);
        EXPECT_NE(other->address(), at);
    }
    auto large = acquire(size_t{2} << 20);
    large->keep_for_ever();
    EXPECT_EQ(large->size(), size_t{2} << 20);
}

TEST_F(table_pool_test, unused_allocations_are_freed_but_for_one) {
    std::vector<std::unique_ptr<table_memory>> held;
    for (int i = 0; i < 16 * 5; ++i) {
        held.push_back(acquire(size_t{64} << 10));
    }
    EXPECT_EQ(pool_->num_shared(), 5u);
    pool_->release_unused();
    EXPECT_EQ(pool_->num_shared(), 5u);
    held.clear();
    EXPECT_EQ(pool_->num_shared(), 1u);
    pool_->release_unused();
    EXPECT_EQ(pool_->num_shared(), 0u);
}

TEST_F(table_pool_test, no_two_lists_get_the_same_bytes) {
    std::mt19937_64 random(1);
    std::vector<std::unique_ptr<table_memory>> held;
    for (int i = 0; i < 20000; ++i) {
        if (held.size() > 200 || (!held.empty() && random() % 3 == 0)) {
            std::swap(held[random() % held.size()], held.back());
            held.pop_back();
        }
        held.push_back(acquire(1 + random() % 40000));
        if (i % 500 != 0) {
            continue;
        }
        std::vector<std::pair<char *, size_t>> ranges;
        for (const auto &one : held) {
            ranges.emplace_back(one->address(), one->size());
        }
        std::sort(ranges.begin(), ranges.end());
        for (size_t r = 1; r < ranges.size(); ++r) {
            ASSERT_LE(ranges[r - 1].first + ranges[r - 1].second, ranges[r].first);
        }
        ASSERT_LE(pool_->num_shared(), 16u);  // 8 MiB at most are in use
    }
    held.clear();
    pool_->release_unused();
    EXPECT_EQ(pool_->num_shared(), 0u);
}

}  // namespace
}  // namespace cuda_nc::worklist
