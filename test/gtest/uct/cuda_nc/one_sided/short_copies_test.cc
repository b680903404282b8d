// Short copies of UCX's own by the mover, and the operations of a transport that lead there.
#include "uct/cuda_nc/one_sided/short_copies.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "ucs/gpu/device.hpp"
#include "uct/cuda_nc/copy_bytes.hpp"
#include "uct/cuda_nc/one_sided/component.hpp"

namespace cuda_nc::uct {
namespace {

using bytes = std::vector<char>;
using gpu::direction;

// A transport that counts its short puts and gets.
unsigned puts, gets;
ucs_status_t own_put(abi::uct_ep *, const void *, unsigned, uint64_t, uintptr_t) {
    ++puts;
    return UCS_ERR_BUSY;
}
ucs_status_t own_get(abi::uct_ep *, void *, unsigned, uint64_t, uintptr_t) {
    ++gets;
    return UCS_ERR_BUSY;
}

class short_copies_test : public testing::Test {
  protected:
    static constexpr size_t size = 3 * longest_short_copy;

    void SetUp() override {
        gpu_ = gpu::platform::instance().get_device(0);
        if (gpu_ == nullptr || gpu_->get_mover() == nullptr ||
            gpu_->allocate(size, &memory_) != UCS_OK) {
            GTEST_SKIP() << "no GPU with a mover here";
        }
        puts = gets = 0;
        transport_.ops.ep_put_short = own_put;
        transport_.ops.ep_get_short = own_get;
        write(counted(size, 0));
    }

    static bytes counted(size_t length, int from) {
        bytes made(length);
        for (size_t i = 0; i < length; ++i) {
            made[i] = static_cast<char>(i * 7 + static_cast<size_t>(from));
        }
        return made;
    }
    void write(const bytes &what) { uct::copy(memory_->address(), what.data(), what.size()); }
    bytes read() {
        bytes got(size);
        uct::copy(got.data(), memory_->address(), size);
        return got;
    }
    static bool make(direction dir, char *on_gpu, char *on_host, size_t length) {
        short_copy one(dir, on_gpu, on_host, length);
        if (one.make()) {
            return true;
        }
        one.made_otherwise();
        return false;
    }
    // A mover takes orders where its kernel is there; else the copy is made otherwise, as UCX does.
    // The simulated mover always comes in the end.
    void copy(direction dir, char *on_gpu, char *on_host, size_t length) {
        for (int tries = 0; tries < (is_simulated() ? 1000 : 1); ++tries) {
            if (make(dir, on_gpu, on_host, length)) {
                return;
            }
        }
        EXPECT_FALSE(is_simulated());
        std::lock_guard<std::mutex> guard(mutex_);
        const bool packs = dir == direction::pack;
        uct::copy(packs ? on_host : on_gpu, packs ? on_gpu : on_host, length);
    }

    std::mutex mutex_;
    gpu::device *gpu_ = nullptr;
    std::unique_ptr<gpu::memory> memory_;
    abi::uct_iface transport_ = {};
};

TEST_F(short_copies_test, to_the_gpu_write_their_bytes_and_no_others) {
    for (size_t length : {size_t(1), size_t(3), size_t(64), size_t(1000), longest_short_copy}) {
        for (size_t at : {size_t(0), size_t(1), size - length}) {
            bytes expected = counted(size, 0), given = counted(length, 100);
            write(expected);
            copy(direction::unpack, memory_->address() + at, given.data(), length);
            std::copy(given.begin(), given.end(), expected.begin() + static_cast<long>(at));
            ASSERT_EQ(read(), expected) << length << " bytes at " << at;
            ASSERT_EQ(given, counted(length, 100));
        }
    }
}

TEST_F(short_copies_test, from_the_gpu_read_their_bytes) {
    const bytes all = counted(size, 0);
    for (size_t length : {size_t(1), size_t(3), size_t(64), size_t(1000), longest_short_copy}) {
        for (size_t at : {size_t(0), size_t(1), size - length}) {
            bytes got(length + 1, 'x');
            copy(direction::pack, memory_->address() + at, got.data(), length);
            EXPECT_EQ(bytes(got.begin(), got.end() - 1),
                      bytes(all.begin() + static_cast<long>(at),
                            all.begin() + static_cast<long>(at + length)));
            EXPECT_EQ(got.back(), 'x');
        }
    }
    EXPECT_EQ(read(), all);
}

TEST_F(short_copies_test, what_the_mover_may_not_touch_is_left_alone) {
    bytes host(size, 'x');
    EXPECT_FALSE(make(direction::pack, memory_->address(), host.data(), 0));
    EXPECT_FALSE(make(direction::pack, memory_->address(), host.data(), longest_short_copy + 1));
    EXPECT_FALSE(make(direction::pack, memory_->address() + size, host.data(), size));
    EXPECT_FALSE(make(direction::pack, host.data(), host.data() + 100, 100)) << "no GPU memory";
    EXPECT_FALSE(make(direction::pack, memory_->address(), memory_->address() + 100, 100))
        << "no host memory";
    EXPECT_EQ(host, bytes(size, 'x'));
    EXPECT_EQ(read(), counted(size, 0));
}

TEST_F(short_copies_test, of_several_threads_at_a_time_do_not_meet) {
    std::vector<std::thread> threads;
    for (int number = 0; number < 4; ++number) {
        threads.emplace_back([this, number] {
            char *mine = memory_->address() + number * 1000;
            for (int i = 0; i < 50; ++i) {
                bytes given = counted(1000, number + i), got(1000);
                copy(direction::unpack, mine, given.data(), given.size());
                copy(direction::pack, mine, got.data(), got.size());
                ASSERT_EQ(got, given);
            }
        });
    }
    for (std::thread &one : threads) {
        one.join();
    }
}

TEST_F(short_copies_test, of_a_transport_are_led_here) {
    lead_short_copies(5, transport_);
    lead_short_copies(5, transport_);  // no second time: that would call itself
    ASSERT_NE(transport_.ops.ep_put_short, own_put);
    abi::uct_ep ep = {&transport_};
    bytes given = counted(64, 50), got(64);
    const auto at = reinterpret_cast<uintptr_t>(memory_->address());
    unsigned taken = 0, tries = 0;
    for (; taken < 20 && tries < 2000; ++tries) {
        taken += transport_.ops.ep_put_short(&ep, given.data(), 64, at, 0) == UCS_OK;
    }
    EXPECT_TRUE(taken == 20 || !is_simulated());
    EXPECT_EQ(puts, tries - taken) << "the others are the transport's own";
    if (taken < 20) {
        GTEST_SKIP() << "this GPU's mover did not come";
    }
    const unsigned before = puts;
    for (tries = 0; transport_.ops.ep_get_short(&ep, got.data(), 64, at, 0) != UCS_OK; ++tries) {
        ASSERT_LT(tries, 1000u);
    }
    EXPECT_EQ(got, given);
    EXPECT_EQ(gets, tries);
    EXPECT_EQ(transport_.ops.ep_put_short(&ep, got.data(), 64,
                                          reinterpret_cast<uintptr_t>(given.data()), 0),
              UCS_ERR_BUSY);
    EXPECT_EQ(puts, before + 1);
}

TEST_F(short_copies_test, of_a_transport_without_them_are_not) {
    transport_.ops.ep_get_short = nullptr;
    lead_short_copies(6, transport_);
    EXPECT_EQ(transport_.ops.ep_put_short, own_put);
}

}  // namespace
}  // namespace cuda_nc::uct
