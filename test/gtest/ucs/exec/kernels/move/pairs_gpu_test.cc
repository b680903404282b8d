// Pair lists on a real GPU that fill it, against bytes copied one by one. Random lists on every
// platform: test/gtest/ucs/gpu/pair_list_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include "ucs/gpu/completion.hpp"
#include "ucs/gpu/gpu_fixture.hpp"

namespace cuda_nc::exec::test {
namespace {

using namespace cuda_nc::gpu;

class pairs_gpu : public testing::Test {
  protected:
    void SetUp() override {
        std::string why;
        platform *all = gpu::test::platform_called("cuda", &why);
        if (all == nullptr) {
            GTEST_SKIP() << "no GPU: " << why;
        }
        device_ = all->get_device(0);
        ASSERT_EQ(device_->create_stream(&stream_), UCS_OK);
        end_ = completion::make(*device_);
        ASSERT_NE(end_, nullptr);
    }

    ucs_status_t finish() {
        const ucs_status_t status = stream_->record(*end_->mark);
        return status != UCS_OK ? status : end_->mark->synchronize();
    }

    // `count` blocks of `length` bytes at twice their length, to the places of a permutation.
    void run(size_t count, size_t length, size_t from_skew, size_t to_skew, bool pinned_list,
             unsigned max_sms) {
        SCOPED_TRACE(std::to_string(count) + " x " + std::to_string(length) + ", skews " +
                     std::to_string(from_skew) + " and " + std::to_string(to_skew));
        const size_t span = 2 * count * length + 64;
        std::unique_ptr<memory> source, target, list;
        ASSERT_EQ(device_->allocate(span, &source), UCS_OK);
        ASSERT_EQ(device_->allocate(span, &target), UCS_OK);
        const size_t list_bytes = count * sizeof(block_pair);
        ASSERT_EQ(pinned_list ? device_->allocate_pinned(list_bytes, &list)
                              : device_->allocate(list_bytes, &list),
                  UCS_OK);
        std::mt19937_64 random(20261124);
        std::vector<char> image(span), wanted(span, 0x5a), found(span);
        for (size_t i = 0; i + 8 <= span; i += 8) {
            const uint64_t word = random();
            std::memcpy(image.data() + i, &word, 8);
        }
        std::vector<size_t> order(count);
        std::iota(order.begin(), order.end(), size_t{0});
        std::shuffle(order.begin(), order.end(), random);
        ASSERT_EQ(stream_->copy(source->address(), image.data(), span), UCS_OK);
        ASSERT_EQ(stream_->copy(target->address(), wanted.data(), span), UCS_OK);
        std::vector<block_pair> pairs(count);
        for (size_t i = 0; i < count; ++i) {
            const size_t from = from_skew + 2 * length * i, to = to_skew + 2 * length * order[i];
            pairs[i] = {source->address() + from, target->address() + to, length};
            std::memcpy(wanted.data() + to, image.data() + from, length);
        }
        ASSERT_EQ(stream_->copy(list->address(), pairs.data(), list_bytes), UCS_OK);
        // Twice: the second launch may start while the first one ends.
        pair_list work;
        work.pairs = reinterpret_cast<const block_pair *>(list->address());
        work.count = count;
        work.max_sms = max_sms;
        ASSERT_EQ(stream_->launch(work), UCS_OK);
        work.ends = end_->next_ends();
        ASSERT_EQ(stream_->launch(work), UCS_OK);
        ASSERT_EQ(stream_->record(*end_->mark), UCS_OK);
        ASSERT_EQ(end_->await(), UCS_OK);
        ASSERT_EQ(stream_->copy(found.data(), target->address(), span), UCS_OK);
        ASSERT_EQ(finish(), UCS_OK);
        ASSERT_EQ(std::memcmp(found.data(), wanted.data(), span), 0);
    }

    device *device_ = nullptr;
    std::unique_ptr<stream> stream_;
    std::unique_ptr<completion> end_;
};

TEST_F(pairs_gpu, lists_that_fill_the_machine_move_every_byte_and_no_gap) {
    run(65536, 4096, 0, 0, true, 0);
    run(65536, 512, 0, 0, false, 0);
    run(200000, 64, 0, 0, true, 0);
    run(200000, 8, 0, 0, true, 0);
    run(2000, 16384, 0, 0, true, 0);
    run(20000, 4096, 0, 0, true, 16);
    run(1, 1 << 20, 0, 0, true, 0);
    run(64, 16384, 0, 0, true, 0);
    run(700, 16384, 0, 0, true, 0);
}

TEST_F(pairs_gpu, lists_that_are_not_aligned_alike_move_every_byte_and_no_gap) {
    for (size_t from : {0, 1, 8, 15}) {
        for (size_t to : {0, 3, 4, 13}) {
            run(20000, 1000, from, to, true, 0);
            run(3000, 4096, from, to, false, 0);
            run(30000, 60, from, to, true, 0);
            run(100, 3333, from, to, true, 2);
            run(40, 20000, from, to, true, 0);
        }
    }
}

}  // namespace
}  // namespace cuda_nc::exec::test
