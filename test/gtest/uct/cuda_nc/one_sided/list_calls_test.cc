// Lists of blocks as UCP hands them over in one call, and runs of equal blocks in them: puts and
// gets. No release of UCP calls the gets yet.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <vector>

#include "uct/cuda_nc/one_sided/between_processes.hpp"
#include "uct/cuda_nc/one_sided/iface.hpp"

namespace cuda_nc::uct {
namespace {

constexpr size_t area = 1 << 20;  // bytes of each side

// Blocks [here, here + length) and [there, there + length), `count` times, `stride` apart.
struct run {
    size_t here, there, length, count, stride;
    size_t extent() const { return (count - 1) * stride + length; }
};

// None over another, on the side that is written to.
std::vector<run> random_runs(std::mt19937 *random, bool written_here) {
    auto below = [random](size_t limit) { return static_cast<size_t>((*random)()) % limit; };
    std::vector<run> all;
    for (size_t at = below(64);;) {
        run one = {};
        one.length = below(8) == 0 ? 0 : 1 + below(below(2) == 0 ? 40 : 3000);
        one.count = 1 + below(4);
        one.stride = one.length + below(100);
        if (at + one.extent() > area) {
            break;
        }
        (written_here ? one.here : one.there) = at;
        (written_here ? one.there : one.here) = below(area - one.extent());
        all.push_back(one);
        at += one.extent() + below(50);
    }
    std::shuffle(all.begin(), all.end(), *random);
    return all;
}

class list_calls : public testing::Test {
  protected:
    void SetUp() override {
        if (gpu::platform::instance().get_device(0) == nullptr) {
            GTEST_SKIP() << "no GPU here";
        }
        packed_key packed;
        ASSERT_TRUE(child_.receive(&packed, sizeof(packed))) << child_.output();
        key_ = std::make_unique<remote_key>(packed);
        ASSERT_TRUE(add_key(*key_));
        local_ = make_memory();
        ASSERT_NE(local_, nullptr);
        iface_.mover = std::make_unique<list_mover>(ucx_, nullptr, nullptr);
        ep_.super.iface = &iface_.super.super;
    }
    void TearDown() override {
        if (key_ != nullptr) {
            remove_key(*key_);
        }
    }

    void move(direction dir, const std::vector<run> &runs, bool with_counts) {
        std::vector<void *> buffers;
        std::vector<size_t> lengths, counts, strides;
        std::vector<uint64_t> addresses;
        for (const run &one : runs) {
            for (size_t i = 0; i < (with_counts ? 1 : one.count); ++i) {
                buffers.push_back(local_->address() + one.here + i * one.stride);
                addresses.push_back(key_->base() + one.there + i * one.stride);
                lengths.push_back(one.length);
                counts.push_back(one.count);
                strides.push_back(one.stride);
            }
        }
        const std::vector<uintptr_t> keys(buffers.size(), handle_of(*key_));
        operation whole;
        const auto call = dir == direction::put ? put_list : get_list;
        const ucs_status_t status =
            call(&ep_.super, buffers.data(), lengths.data(), nullptr, addresses.data(), keys.data(),
                 with_counts ? counts.data() : nullptr, with_counts ? strides.data() : nullptr,
                 buffers.size(), &whole.end);
        ASSERT_EQ(status, UCS_INPROGRESS);
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        while (!whole.has_ended() && std::chrono::steady_clock::now() < limit) {
            iface_.mover->progress();
        }
        ASSERT_TRUE(whole.has_ended());
        ASSERT_EQ(whole.end.status, UCS_OK);
    }
    // All that the other process has, gaps included, by one block.
    std::vector<char> theirs() {
        std::vector<char> bytes(area);
        move(direction::get, {{area, 0, area, 1, area}}, false);
        copy(bytes.data(), local_->address() + area, area);
        return bytes;
    }
    std::vector<char> ours() {
        std::vector<char> bytes(area);
        copy(bytes.data(), local_->address(), area);
        return bytes;
    }

    const ucx_api ucx_ = worker_calls();
    gpu::test::child_process child_{"gather_peer.DISABLED_lends_memory", {}};
    std::unique_ptr<remote_key> key_;
    std::unique_ptr<gpu::memory> local_;
    one_sided_interface iface_ = {};
    one_sided_endpoint ep_ = {};
};

void apply(const std::vector<run> &runs, const std::vector<char> &ours, std::vector<char> *theirs) {
    for (const run &one : runs) {
        for (size_t i = 0; i < one.count; ++i) {
            const auto from = ours.begin() + static_cast<std::ptrdiff_t>(one.here + i * one.stride);
            std::copy(from, from + static_cast<std::ptrdiff_t>(one.length),
                      theirs->begin() + static_cast<std::ptrdiff_t>(one.there + i * one.stride));
        }
    }
}

TEST_F(list_calls, move_blocks_and_runs_of_them_both_ways) {
    std::mt19937 random(20261130);
    for (const bool with_counts : {false, true}) {
        std::vector<char> image(area);
        for (char &byte : image) {
            byte = static_cast<char>(random());
        }
        copy(local_->address(), image.data(), area);
        std::vector<char> expected = theirs();
        const std::vector<run> puts = random_runs(&random, false);
        move(direction::put, puts, with_counts);
        apply(puts, image, &expected);
        ASSERT_TRUE(theirs() == expected);
        std::vector<run> gets = random_runs(&random, true);
        move(direction::get, gets, with_counts);
        for (run &one : gets) {
            std::swap(one.here, one.there);
        }
        apply(gets, expected, &image);
        ASSERT_TRUE(ours() == image);
    }
}

TEST_F(list_calls, with_a_block_outside_the_memory_of_its_key_fail) {
    void *buffer = local_->address();
    const size_t length = 64;
    const uint64_t behind = key_->base() + memory_bytes - length + 1;
    const uintptr_t key = handle_of(*key_);
    operation never;
    for (const auto call : {put_list, get_list}) {
        EXPECT_EQ(call(&ep_.super, &buffer, &length, nullptr, &behind, &key, nullptr, nullptr, 1,
                       &never.end),
                  UCS_ERR_INVALID_PARAM);
    }
    EXPECT_FALSE(never.has_ended());
}

}  // namespace
}  // namespace cuda_nc::uct
