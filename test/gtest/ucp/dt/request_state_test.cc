#include "ucp/dt/request_state.hpp"

#include <thread>

#include "ucp/dt/message.hpp"
#include "ucp/dt/settings_guard.hpp"
#include "ucp/dt/staging.hpp"
#include "ucs/base/statistics.hpp"

namespace cuda_nc::test {
namespace {

using dt::request_state;
using place = buffer::place;

// Where the buffer lies, and how much staging may be used for it.
struct setup {
    place where;
    const char *staging_size, *fragment_size, *zero_copy;
};

std::string name_of_setup(const ::testing::TestParamInfo<setup> &info) {
    return std::string(name_of(info.param.where)) + "_staging" + info.param.staging_size +
           "_fragment" + info.param.fragment_size + "_zerocopy_" + info.param.zero_copy;
}

class request_state_test : public ::testing::TestWithParam<setup> {
  protected:
    void SetUp() override {
        if (!is_there(GetParam().where)) {
            GTEST_SKIP() << "no such GPU, simulated or real";
        }
    }

    // A few messages of each magnitude.
    template <typename function>
    void for_each_message(uint64_t seed, const function &run) {
        random_engine random(seed);
        for (size_t magnitude : {0, 1, 60, 5000, 70000, 800000}) {
            for (int i = 0; i < (magnitude < 100000 ? 8 : 1); ++i) {
                SCOPED_TRACE("seed " + std::to_string(seed) + ", about " +
                             std::to_string(magnitude) + " B, message " + std::to_string(i));
                size_t size = magnitude == 0 ? 0 : uniform(random, magnitude / 2 + 1, magnitude);
                datatype type = random_datatype(random, size);
                type.count = magnitude == 0 ? 0 : type.count;
                run(random, type);
                if (HasFailure()) {
                    return;
                }
            }
        }
        dt::release_unused();
        EXPECT_EQ(dt::device_staging::bytes_in_use(), 0u);
        EXPECT_EQ(dt::device_staging::bytes_held(), 0u);
    }

    settings_guard settings_{{"STAGING_SIZE", GetParam().staging_size},
                             {"FRAGMENT_SIZE", GetParam().fragment_size},
                             {"ZERO_COPY", GetParam().zero_copy}};
};

TEST_P(request_state_test, packs_fragments_in_order) {
    for_each_message(1, [](random_engine &random, const datatype &type) {
        buffer source(type, GetParam().where, random);
        auto *state = request_state::start_pack(type.make_layout(), source.base(), source.info());
        ASSERT_NE(state, nullptr);
        EXPECT_EQ(state->user, nullptr);
        ASSERT_EQ(state->packed_size(), source.packed_size());
        bytes packed(source.packed_size() + 1, 0xee);
        size_t longest = random_longest(random, packed.size());
        for (fragment one : cut(random, source.packed_size(), longest)) {
            // A transport without room has UCP pack the same fragment again.
            for (uint64_t tries = random() % 8 == 0 ? 2 : 1; tries != 0; --tries) {
                ASSERT_EQ(state->pack(one.offset, &packed[one.offset], one.length), one.length);
            }
        }
        EXPECT_EQ(state->pack(source.packed_size(), packed.data(), 100), 0u);
        EXPECT_EQ(packed.back(), 0xee);
        packed.pop_back();
        EXPECT_TRUE(packed == source.packed());
        state->finish();
        EXPECT_TRUE(source.is_as_expected());
    });
}

// UCX may finish a message's state again when it serves the next message.
TEST_P(request_state_test, what_ucx_keeps_of_a_message_that_has_ended_finds_none) {
    for_each_message(4, [](random_engine &random, const datatype &type) {
        buffer memory(type, GetParam().where, random);
        std::vector<void *> ended;
        for (int i = 0; i < 4; ++i) {
            auto *state =
                i % 2 == 0
                    ? request_state::start_pack(type.make_layout(), memory.base(), memory.info())
                    : request_state::start_unpack(type.make_layout(), memory.base(), memory.info());
            ASSERT_NE(state, nullptr);
            void *const kept = state->to_ucx();
            EXPECT_EQ(request_state::from_ucx(kept), state);
            EXPECT_EQ(request_state::to_finish(kept), state);
            state->finish();
            ended.push_back(kept);
            for (void *one : ended) {
                EXPECT_EQ(request_state::to_finish(one), nullptr);
            }
        }
    });
}

TEST_P(request_state_test, packs_all_at_once_without_a_limit) {
    for_each_message(2, [](random_engine &random, const datatype &type) {
        buffer source(type, GetParam().where, random);
        auto *state = request_state::start_pack(type.make_layout(), source.base(), source.info());
        ASSERT_NE(state, nullptr);
        bytes packed(source.packed_size());
        EXPECT_EQ(state->pack(0, packed.data(), SIZE_MAX), packed.size());
        EXPECT_TRUE(packed == source.packed());
        state->finish();
    });
}

TEST_P(request_state_test, packs_at_any_offset) {
    for_each_message(3, [](random_engine &random, const datatype &type) {
        buffer source(type, GetParam().where, random);
        auto *state = request_state::start_pack(type.make_layout(), source.base(), source.info());
        ASSERT_NE(state, nullptr);
        bytes packed = source.packed(), piece(packed.size());
        for (int i = 0; i < 12 && !packed.empty(); ++i) {
            size_t offset = random() % packed.size();
            size_t most = uniform(random, 1, packed.size());
            size_t length = std::min(most, packed.size() - offset);
            ASSERT_EQ(state->pack(offset, piece.data(), most), length);
            ASSERT_EQ(std::memcmp(piece.data(), &packed[offset], length), 0) << offset;
        }
        state->finish();
    });
}

auto cut_at_random(random_engine &random, size_t size, bool shuffled) {
    auto fragments = cut(random, size, random_longest(random, size));
    if (shuffled) {
        std::shuffle(fragments.begin(), fragments.end(), random);
    }
    return fragments;
}

void unpack_all(random_engine &random, const datatype &type, place where, bool shuffled) {
    buffer target(type, where, random);
    bytes packed = random_bytes(random, target.packed_size());
    auto *state = request_state::start_unpack(type.make_layout(), target.base(), target.info());
    ASSERT_NE(state, nullptr);
    ASSERT_EQ(state->packed_size(), packed.size());
    auto fragments = cut_at_random(random, packed.size(), shuffled);
    for (fragment one : fragments) {
        bytes copy(&packed[one.offset], &packed[one.offset] + one.length);
        ASSERT_EQ(state->unpack(one.offset, copy.data(), one.length), UCS_OK);
        std::fill(copy.begin(), copy.end(), 0xdd);  // UCP reuses its memory at once
    }
    target.expect(0, packed.data(), packed.size());
    EXPECT_TRUE(target.is_as_expected()) << "before finish()";
    state->finish();
    EXPECT_TRUE(target.is_as_expected());
}

TEST_P(request_state_test, unpacks_fragments_in_order) {
    for_each_message(4, [](random_engine &random, const datatype &type) {
        unpack_all(random, type, GetParam().where, false);
    });
}

TEST_P(request_state_test, unpacks_fragments_in_any_order) {
    for_each_message(5, [](random_engine &random, const datatype &type) {
        unpack_all(random, type, GetParam().where, true);
    });
}

TEST_P(request_state_test, a_short_message_is_there_after_finish) {
    for_each_message(6, [](random_engine &random, const datatype &type) {
        buffer target(type, GetParam().where, random);
        bytes packed = random_bytes(random, target.packed_size());
        auto *state = request_state::start_unpack(type.make_layout(), target.base(), target.info());
        ASSERT_NE(state, nullptr);
        auto fragments = cut_at_random(random, packed.size(), random() % 2 == 0);
        fragments.resize(fragments.empty() ? 0 : random() % fragments.size());
        for (fragment one : fragments) {
            ASSERT_EQ(state->unpack(one.offset, &packed[one.offset], one.length), UCS_OK);
            target.expect(one.offset, &packed[one.offset], one.length);
        }
        state->finish();
        EXPECT_TRUE(target.is_as_expected());
    });
}

TEST_P(request_state_test, what_was_flushed_is_there_and_more_may_follow) {
    for_each_message(8, [](random_engine &random, const datatype &type) {
        buffer target(type, GetParam().where, random);
        bytes packed = random_bytes(random, target.packed_size());
        auto *state = request_state::start_unpack(type.make_layout(), target.base(), target.info());
        ASSERT_NE(state, nullptr);
        auto fragments = cut_at_random(random, packed.size(), random() % 2 == 0);
        size_t flushes = 0;
        for (fragment one : fragments) {
            ASSERT_EQ(state->unpack(one.offset, &packed[one.offset], one.length), UCS_OK);
            target.expect(one.offset, &packed[one.offset], one.length);
            if (flushes < 5 && random() % 4 == 0) {
                ASSERT_EQ(state->flush(), UCS_OK);
                ASSERT_TRUE(target.is_as_expected());
                ++flushes;
            }
        }
        EXPECT_TRUE(target.is_as_expected());
        state->finish();
    });
}

TEST_P(request_state_test, finish_without_a_fragment_leaves_memory_alone) {
    for_each_message(7, [](random_engine &random, const datatype &type) {
        buffer one(type, GetParam().where, random);
        auto *reader = request_state::start_pack(type.make_layout(), one.base(), one.info());
        auto *writer = request_state::start_unpack(type.make_layout(), one.base(), one.info());
        reader->finish();
        writer->finish();
        EXPECT_TRUE(one.is_as_expected());
    });
}

TEST_P(request_state_test, refuses_bytes_beyond_the_end) {
    random_engine random(8);
    datatype type = random_datatype(random, 1000);
    buffer target(type, GetParam().where, random);
    auto *state = request_state::start_unpack(type.make_layout(), target.base(), target.info());
    bytes packed(target.packed_size() + 1);
    EXPECT_EQ(state->unpack(0, packed.data(), packed.size()), UCS_ERR_MESSAGE_TRUNCATED);
    EXPECT_EQ(state->unpack(SIZE_MAX, packed.data(), 2), UCS_ERR_MESSAGE_TRUNCATED);
    state->finish();
    EXPECT_TRUE(target.is_as_expected());
}

void run_interleaved(random_engine &random, size_t num_messages, size_t size, place where) {
    std::vector<std::unique_ptr<message>> messages;
    for (size_t i = 0; i < num_messages; ++i) {
        place to = random() % 3 == 0 ? place::host : where;
        datatype type = random_datatype(random, uniform(random, 1, size));
        messages.push_back(
            std::make_unique<message>(random, type, where, to, random_longest(random, 6 * size)));
        ASSERT_TRUE(messages.back()->start());
    }
    while (!messages.empty() && !::testing::Test::HasFailure()) {
        size_t i = random() % messages.size();
        if (messages[i]->done()) {
            messages[i]->end(true);
            messages.erase(messages.begin() + static_cast<ptrdiff_t>(i));
        } else {
            ASSERT_EQ(messages[i]->step(), UCS_OK);
        }
    }
}

TEST_P(request_state_test, many_messages_side_by_side) {
    random_engine random(9);
    run_interleaved(random, 20, 200000, GetParam().where);
}

TEST_P(request_state_test, threads_share_staging) {
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t) {
        threads.emplace_back([t] {
            random_engine random(100 + t);
            run_interleaved(random, 6, 100000, GetParam().where);
        });
    }
    for (std::thread &one : threads) {
        one.join();
    }
}

TEST_P(request_state_test, a_state_may_end_on_another_thread) {
    random_engine random(10);
    for (int i = 0; i < 2; ++i) {
        std::vector<std::unique_ptr<message>> messages;
        for (int k = 0; k < 70; ++k) {
            messages.push_back(std::make_unique<message>(random, random_datatype(random, 500),
                                                         GetParam().where, GetParam().where, 300));
            ASSERT_TRUE(messages.back()->start());
        }
        std::thread other([&messages] {
            for (auto &one : messages) {
                while (!one->done()) {
                    ASSERT_EQ(one->step(), UCS_OK);
                }
                one->end(true);
            }
        });
        other.join();
    }
}

INSTANTIATE_TEST_SUITE_P(, request_state_test,
                         ::testing::Values(setup{place::host, "256M", "1M", "auto"},
                                           setup{place::device0, "256M", "1M", "auto"},
                                           setup{place::device1, "256M", "50000", "n"},
                                           setup{place::device0, "256M", "64K", "y"},
                                           setup{place::device0, "64K", "16K", "auto"},
                                           setup{place::device0, "20K", "1M", "n"},
                                           setup{place::device0, "4K", "1M", "auto"}),
                         name_of_setup);

TEST(request_state_kinds, refuses_what_it_cannot_serve) {
    random_engine random(12);
    datatype type = random_datatype(random, 100);
    bytes memory(10);
    gpu::memory_info unknown = {gpu::memory_kind::unknown, -1};
    gpu::memory_info lost = {gpu::memory_kind::device, 1000};
    for (const gpu::memory_info &info : {unknown, lost}) {
        layout_ref what = type.make_layout();
        EXPECT_EQ(request_state::start_pack(what, memory.data(), info), nullptr);
        EXPECT_EQ(request_state::start_unpack(what, memory.data(), info), nullptr);
    }
}

TEST(request_state_kinds, pinned_memory_is_host_memory) {
    random_engine random(13);
    datatype type = random_datatype(random, 3000);
    buffer source(type, place::host, random);
    gpu::memory_info pinned = {gpu::memory_kind::pinned, -1};
    auto *state = request_state::start_pack(type.make_layout(), source.base(), pinned);
    bytes packed(source.packed_size());
    EXPECT_EQ(state->pack(0, packed.data(), SIZE_MAX), packed.size());
    EXPECT_TRUE(packed == source.packed());
    state->finish();
}

TEST(request_state_statistics, tells_what_happened_and_why) {
    if (!is_there(place::device0)) {
        GTEST_SKIP() << "no GPU, simulated or real";
    }
    settings_guard settings{{"STATS", "y"}};
    random_engine random(15);
    const datatype type = strided_words(24, 1234);
    buffer source(type, place::device0, random), target(type, place::host, random);
    layout_ref what = type.make_layout();
    auto *reader = request_state::start_pack(what, source.base(), source.info());
    auto *writer = request_state::start_unpack(what, target.base(), target.info());
    bytes packed(source.packed_size());
    reader->pack(0, packed.data(), SIZE_MAX);
    writer->unpack(0, packed.data(), packed.size());
    reader->finish();
    writer->finish();
    std::string text = format_statistics();
    EXPECT_NE(text.find("strided 8 B"), std::string::npos) << text;
    EXPECT_NE(text.find("GPU zero-copy (buffer in GPU memory)"), std::string::npos) << text;
    EXPECT_NE(text.find("host engine (buffer in host memory)"), std::string::npos) << text;
    EXPECT_NE(text.find("9872"), std::string::npos) << text;
}

}  // namespace
}  // namespace cuda_nc::test
