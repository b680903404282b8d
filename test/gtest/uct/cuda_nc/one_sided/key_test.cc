// Keys of GPU memory.
#include "uct/cuda_nc/one_sided/key.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "uct/cuda_nc/memory/this_machine.hpp"
#include "uct/cuda_nc/one_sided/component.hpp"

namespace cuda_nc::uct {
namespace {

class key_test : public testing::Test {
  protected:
    void SetUp() override {
        gpu_ = gpu::platform::instance().get_device(0);
        if (gpu_ == nullptr || gpu_->allocate(size, &memory_) != UCS_OK) {
            GTEST_SKIP() << "no GPU here";
        }
        address_ = reinterpret_cast<uintptr_t>(memory_->address());
    }
    static constexpr size_t size = 1 << 20;
    gpu::device *gpu_ = nullptr;
    std::unique_ptr<gpu::memory> memory_;
    uint64_t address_ = 0;
};

TEST_F(key_test, names_the_allocation_of_a_part_of_it) {
    const packed_key key = make_key(0, address_ + 1000, 5000, nullptr);
    EXPECT_EQ(key.version, one_sided_version);
    EXPECT_EQ(key.is_shared, sharing::gpu_memory);
    EXPECT_EQ(key.host, this_machine());
    EXPECT_TRUE(is_own(key.process));
    EXPECT_EQ(key.begin, address_ + 1000);
    EXPECT_EQ(key.length, 5000u);
    EXPECT_LE(key.base, address_);
    EXPECT_GE(key.base + key.size, address_ + size);
    EXPECT_EQ(make_key(0, address_, size, nullptr).allocation, key.allocation);
}

TEST_F(key_test, of_memory_allocated_again_is_another_one) {
    const uint64_t before = make_key(0, address_, size, nullptr).allocation;
    memory_.reset();
    ASSERT_EQ(gpu_->allocate(size, &memory_), UCS_OK);
    const auto now = reinterpret_cast<uintptr_t>(memory_->address());
    EXPECT_NE(make_key(0, now, size, nullptr).allocation, before);
}

bool same(const packed_key &one, const packed_key &other) {
    return std::memcmp(&one, &other, sizeof(one)) == 0;
}

// UCP hands on what lies at one place of each key of a list.
TEST(remote_keys, are_known_until_they_are_released) {
    std::vector<std::unique_ptr<remote_key>> keys;
    std::vector<uintptr_t> handles;
    const remote_key unknown{packed_key()};
    for (int i = 0; i < 100; ++i) {
        keys.push_back(std::make_unique<remote_key>(packed_key()));
        ASSERT_TRUE(add_key(*keys.back()));
    }
    for (int i = 0; i < 1000; ++i) {
        handles.push_back(handle_of(*keys[static_cast<size_t>(i * 37 % 100)]));
    }
    EXPECT_TRUE(are_keys(handles.data(), handles.size()));
    EXPECT_TRUE(are_keys(nullptr, 0));
    for (size_t at : {size_t{0}, size_t{1}, size_t{500}, handles.size() - 1}) {
        for (uintptr_t wrong : {uintptr_t{0}, ~uintptr_t{0}, handles[at] + 1, handle_of(unknown)}) {
            std::vector<uintptr_t> mixed = handles;
            mixed[at] = wrong;
            EXPECT_FALSE(are_keys(mixed.data(), mixed.size())) << at << " " << wrong;
        }
    }
    remove_key(*keys[37]);
    EXPECT_FALSE(are_keys(handles.data(), handles.size()));
    for (const auto &one : keys) {
        remove_key(*one);
        EXPECT_FALSE(are_keys(handles.data(), 1));
    }
}

TEST_F(key_test, of_a_registration_is_that_of_its_memory) {
    registered_memory registered(0);
    const packed_key whole = make_key(0, address_, size, nullptr);
    for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(same(registered.key_of(address_, size), whole));
        EXPECT_TRUE(
            same(registered.key_of(address_ + 100, 1), make_key(0, address_ + 100, 1, nullptr)));
    }
    EXPECT_EQ(registered.key_of(address_, uint64_t(1) << 40).is_shared, sharing::none);
    EXPECT_TRUE(same(registered.key_of(address_, size), whole));
}

// UCX may not have heard that the memory was freed, and keep its registration.
TEST_F(key_test, of_a_registration_is_never_that_of_memory_before) {
    registered_memory registered(0);
    for (int i = 0; i < 20; ++i) {
        const packed_key before = registered.key_of(address_, size);
        ASSERT_EQ(before.is_shared, sharing::gpu_memory);
        memory_.reset();
        EXPECT_NE(registered.key_of(address_, size).allocation, before.allocation);
        ASSERT_EQ(gpu_->allocate(size, &memory_), UCS_OK);  // mostly at the same address
        address_ = reinterpret_cast<uintptr_t>(memory_->address());
        const packed_key now = registered.key_of(address_, size);
        EXPECT_NE(now.allocation, before.allocation);
        EXPECT_TRUE(same(now, make_key(0, address_, size, nullptr)));
    }
}

TEST_F(key_test, of_what_is_no_single_allocation_is_not_shared) {
    int on_the_host = 0;
    EXPECT_EQ(
        make_key(0, reinterpret_cast<uintptr_t>(&on_the_host), sizeof(int), nullptr).is_shared,
        sharing::none);
    EXPECT_EQ(make_key(0, address_, uint64_t(1) << 40, nullptr).is_shared, sharing::none);
    EXPECT_EQ(make_key(0, address_ + 1, UINT64_MAX, nullptr).is_shared, sharing::none);
    EXPECT_EQ(make_key(-1, address_, size, nullptr).is_shared, sharing::none);
    EXPECT_EQ(make_key(1000, address_, size, nullptr).is_shared, sharing::none);
}

TEST_F(key_test, contains_what_was_registered_and_no_other_byte_of_the_allocation) {
    packed_key packed = {};
    packed.base = 0x800;
    packed.size = 0x10000;
    packed.begin = 0x1000;
    packed.length = 0x100;
    const remote_key key(packed);
    EXPECT_TRUE(key.contains(0x1000, 0x100));
    EXPECT_TRUE(key.contains(0x10ff, 1));
    EXPECT_TRUE(key.contains(0x1100, 0));
    EXPECT_FALSE(key.contains(0x1000, 0x101));
    EXPECT_FALSE(key.contains(0x1100, 1));
    EXPECT_FALSE(key.contains(0xfff, 1));
    EXPECT_FALSE(key.contains(0x1001, UINT64_MAX));
    EXPECT_FALSE(key.contains(UINT64_MAX, 2));
}

TEST_F(key_test, of_a_process_that_is_not_there_reaches_nothing) {
    packed_key packed = make_key(0, address_, size, nullptr);
    packed.process.pid = 0x7ffffff0;
    packed.process.started = 1;
    packed.memory = {};
    EXPECT_FALSE(static_cast<bool>(remote_key(packed).reach(0, true)));
}

TEST_F(key_test, has_a_note_for_each_gpu_and_for_none) {
    packed_key packed = {};
    remote_key key(packed);
    remote_key::note *none = key.note_for(-1);
    ASSERT_NE(none, nullptr);
    none->user = 7;
    EXPECT_EQ(key.note_for(2)->user, 0u);
    key.note_for(2)->user = 9;
    EXPECT_EQ(key.note_for(0)->user, 0u);
    EXPECT_EQ(key.note_for(-1)->user, 7u);
    EXPECT_EQ(key.note_for(2)->user, 9u);
}

}  // namespace
}  // namespace cuda_nc::uct
