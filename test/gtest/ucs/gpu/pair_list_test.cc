// Launches of random pair lists, on every platform, against bytes copied one by one.
#include <cstring>

#include "ucs/gpu/completion.hpp"
#include "ucs/gpu/gpu_fixture.hpp"
#include "ucs/gpu/random_pairs.hpp"

namespace cuda_nc::gpu::test {
namespace {

class gpu_pair_list : public gpu_test {
  protected:
    size_t number(size_t least, size_t most) { return least + random_() % (most - least + 1); }

    // Where the device reads the list: pinned memory, or its own.
    std::unique_ptr<memory> place(const std::vector<block_pair> &pairs, bool pinned) {
        const size_t bytes = pairs.size() * sizeof(block_pair);
        std::unique_ptr<memory> made = pinned ? allocate_pinned(bytes) : allocate(bytes);
        auto *begin = reinterpret_cast<const char *>(pairs.data());
        if (pinned) {
            std::memcpy(made->address(), begin, bytes);
        } else {
            put(made->address(), std::vector<char>(begin, begin + bytes));
        }
        return made;
    }
};
INSTANTIATE_TEST_SUITE_P(all, gpu_pair_list, testing::ValuesIn(platform_names()),
                         name_of_platform());

TEST_P(gpu_pair_list, random_lists_move_their_bytes_and_nothing_else) {
    std::unique_ptr<completion> end = completion::make(*device_);
    ASSERT_NE(end, nullptr);
    int told = 0;
    for (unsigned round = 0; round < 140; ++round) {
        SCOPED_TRACE("round " + std::to_string(round) + " of seed " + std::to_string(seed_));
        const auto what = random_pairs::make(random_, number(1, round % 2 == 0 ? 300 : 3000),
                                             round % random_pairs::kinds);
        const bool to_pinned = number(0, 2) == 0, from_pinned = number(0, 2) == 0;
        const size_t skew = number(0, 15), other = number(0, 15);
        const std::vector<char> image = random_bytes(other + what.source_size, random_);
        std::vector<char> wanted = random_bytes(skew + what.target_size, random_);
        auto from = from_pinned ? allocate_pinned(image.size()) : allocate(image.size());
        auto to = to_pinned ? allocate_pinned(wanted.size()) : allocate(wanted.size());
        put(from->address(), image);
        put(to->address(), wanted);
        what.apply(image.data() + other, wanted.data() + skew);

        const std::vector<block_pair> pairs =
            what.at(from->address() + other, to->address() + skew);
        std::unique_ptr<memory> placed = place(pairs, number(0, 1) == 0);
        pair_list list;
        list.pairs = reinterpret_cast<const block_pair *>(placed->address());
        list.count = pairs.size();
        list.max_sms = number(0, 2) == 0 ? static_cast<unsigned>(number(1, 4)) : 0;
        list.ends = number(0, 1) == 0 ? end->next_ends() : nullptr;
        ASSERT_EQ(stream_->launch(list), UCS_OK);
        ASSERT_EQ(stream_->record(*end->mark), UCS_OK);
        if (list.ends != nullptr) {
            ASSERT_TRUE(list.ends->count != 0 || list.count > 256) << "a short list tells";
            ASSERT_LE(list.ends->count, end_words::most);
            ASSERT_EQ(end->await(), UCS_OK);
            told += list.ends->count != 0;
            if (to_pinned) {  // at once, before any mark of the stream
                ASSERT_EQ(std::memcmp(to->address(), wanted.data(), wanted.size()), 0);
            }
        }
        ASSERT_EQ(finish(*stream_), UCS_OK);
        ASSERT_TRUE(get(to->address(), wanted.size()) == wanted);
        ASSERT_TRUE(get(from->address(), image.size()) == image);
    }
    EXPECT_GT(told, 10);
}

TEST_P(gpu_pair_list, an_empty_list_does_nothing_and_one_without_pairs_is_refused) {
    pair_list list;
    EXPECT_EQ(stream_->launch(list), UCS_OK);
    list.count = 1;
    EXPECT_EQ(stream_->launch(list), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(finish(*stream_), UCS_OK);
    // Pairs of no length are not looked at.
    const std::vector<block_pair> nothing(100, block_pair{nullptr, nullptr, 0});
    std::unique_ptr<memory> placed = place(nothing, true);
    list.pairs = reinterpret_cast<const block_pair *>(placed->address());
    list.count = nothing.size();
    EXPECT_EQ(stream_->launch(list), UCS_OK);
    EXPECT_EQ(finish(*stream_), UCS_OK);
}

TEST_P(gpu_pair_list, lists_on_one_stream_run_one_after_the_other) {
    constexpr size_t blocks = 64, length = 512, size = blocks * length;
    std::unique_ptr<memory> a = allocate(size), b = allocate(size), c = allocate(size);
    const std::vector<char> image = random_bytes(size, random_);
    put(a->address(), image);
    auto between = [&](const memory &from, memory &to) {
        std::vector<block_pair> pairs;
        for (size_t i = 0; i < blocks; ++i) {  // the blocks in reverse
            pairs.push_back(
                {from.address() + i * length, to.address() + (blocks - 1 - i) * length, length});
        }
        return place(pairs, true);
    };
    auto first = between(*a, *b), second = between(*b, *c), third = between(*c, *a);
    for (int round = 0; round < 20; ++round) {
        for (const memory *one : {first.get(), second.get(), third.get()}) {
            pair_list list;
            list.pairs = reinterpret_cast<const block_pair *>(one->address());
            list.count = blocks;
            ASSERT_EQ(stream_->launch(list), UCS_OK);
        }
    }
    ASSERT_EQ(finish(*stream_), UCS_OK);
    EXPECT_TRUE(get(a->address(), size) == image) << "reversed 60 times";
    const std::vector<char> reversed = get(c->address(), size);
    for (size_t i = 0; i < blocks; ++i) {
        ASSERT_EQ(std::memcmp(reversed.data() + i * length,
                              image.data() + (blocks - 1 - i) * length, length),
                  0);
    }
}

}  // namespace
}  // namespace cuda_nc::gpu::test
