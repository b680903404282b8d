#include "ucs/gpu/known_memory.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace cuda_nc::gpu {
namespace {

class known_memory_test : public testing::Test {
  protected:
    void SetUp() override {
        if (platform::instance().num_devices() == 0) {
            GTEST_SKIP() << "no GPU, simulated or real";
        }
        ASSERT_EQ(platform::instance().get_device(0)->allocate(size, &memory_), UCS_OK);
        address_ = static_cast<char *>(memory_->address());
    }
    static constexpr size_t size = 4096;
    std::unique_ptr<memory> memory_;
    char *address_ = nullptr;
};

TEST_F(known_memory_test, answers_in_its_scope_without_asking_again) {
    {
        known_memory known;
        EXPECT_EQ(known.look(address_).kind, memory_kind::device);
        memory_.reset();
        EXPECT_EQ(known_memory::query(address_).kind, memory_kind::device);
    }
    EXPECT_EQ(known_memory::query(address_).kind, platform::instance().query(address_).kind)
        << "memory of other tests may lie there now";
}

TEST_F(known_memory_test, asks_for_every_other_address) {
    char on_host = 0;
    known_memory known;
    EXPECT_EQ(known_memory::query(address_).kind, memory_kind::device);
    EXPECT_EQ(known.look(address_).kind, memory_kind::device);
    EXPECT_EQ(known_memory::query(&on_host).kind, memory_kind::host);
    EXPECT_EQ(known_memory::query(address_ + 8).kind, memory_kind::device);
    EXPECT_EQ(known.look(&on_host).kind, memory_kind::host);
    EXPECT_EQ(known_memory::query(address_).kind, memory_kind::device);
}

}  // namespace
}  // namespace cuda_nc::gpu
