#include "ucp/dt/message_handles.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "ucp/dt/request_state.hpp"

namespace cuda_nc::dt::test {
namespace {

struct end_stub final : uct::user_buffer {
    int device() const noexcept override { return 0; }
    uint64_t packed_bytes() const noexcept override { return 0; }
    ucs_status_t enqueue(uint64_t, uint64_t, char *, gpu::event &) noexcept override {
        return UCS_ERR_UNSUPPORTED;
    }
};

class state_stub : public request_state {};

uct::user_buffer *find(uint64_t word) {
    auto *finder = uct::buffer_finder.load();
    return finder != nullptr ? finder(word) : nullptr;
}

TEST(message_handles, are_found_while_in_use_and_never_again) {
    state_stub state;
    end_stub end;
    message_handle handle;
    std::set<uintptr_t> seen;
    for (int i = 0; i < 10000; ++i) {
        const uintptr_t word = handle.acquire(state, end);
        ASSERT_NE(word, 0u);
        ASSERT_EQ(word, handle.value());
        ASSERT_EQ(word & 7, message_handle_mark);
        ASSERT_TRUE(seen.insert(word).second) << "taken twice";
        ASSERT_EQ(state_of_message_handle(word), &state);
        ASSERT_EQ(find(word), &end);
        handle.release();
        handle.release();  // does nothing
        ASSERT_EQ(handle.value(), 0u);
        ASSERT_EQ(find(word), nullptr);
    }
    for (uintptr_t old : seen) {
        ASSERT_EQ(find(old), nullptr);
    }
}

TEST(message_handles, belong_to_the_message_that_acquired_them_last) {
    state_stub states[2];
    end_stub ends[2];
    message_handle handle;
    for (int i : {0, 1, 0}) {
        const uintptr_t word = handle.acquire(states[i], ends[i]);
        EXPECT_EQ(state_of_message_handle(word), &states[i]);
        EXPECT_EQ(find(word), &ends[i]);
        handle.release();
    }
}

// Whatever many threads that end at the same time do to each other.
TEST(message_handles, places_of_objects_that_end_are_used_again) {
    constexpr size_t threads = 8, objects = 64, rounds = 50;
    auto place_of = [](uintptr_t word) { return word >> 3 & ((uintptr_t{1} << 24) - 1); };
    state_stub state;
    end_stub end;
    uintptr_t highest[2] = {0, 0};  // after the first round, and after the last
    for (size_t round = 0; round < rounds; ++round) {
        std::vector<std::thread> all;
        std::mutex mutex;
        for (size_t i = 0; i < threads; ++i) {
            all.emplace_back([&] {
                std::vector<message_handle> mine(objects);
                uintptr_t most = 0;
                for (message_handle &one : mine) {
                    most = std::max(most, place_of(one.acquire(state, end)));
                }
                std::lock_guard<std::mutex> guard(mutex);
                uintptr_t &seen = highest[round == 0 ? 0 : 1];
                seen = std::max(seen, most);
            });
        }
        for (std::thread &one : all) {
            one.join();
        }
    }
    EXPECT_LE(highest[1], highest[0] + threads * objects);
}

TEST(message_handles, of_an_object_that_ends_are_not_found_and_not_repeated) {
    state_stub state;
    end_stub end;
    std::set<uintptr_t> seen;
    for (int i = 0; i < 1000; ++i) {
        uintptr_t word = 0;
        {
            message_handle handle;
            word = handle.acquire(state, end);
            ASSERT_EQ(find(word), &end);
        }
        ASSERT_EQ(find(word), nullptr);
        ASSERT_TRUE(seen.insert(word).second) << "taken twice";
    }
}

// An object is made in one thread, used in another, and ends in a third.
TEST(message_handles, of_many_threads_differ) {
    constexpr int num_threads = 4, rounds = 200, objects = 16;
    state_stub state;
    end_stub end;
    std::mutex mutex;
    std::set<uintptr_t> seen;
    std::vector<std::unique_ptr<message_handle>> left;
    auto use = [&] {
        std::vector<uintptr_t> mine;
        std::vector<std::unique_ptr<message_handle>> handles;
        {
            std::lock_guard<std::mutex> guard(mutex);
            handles.swap(left);
        }
        while (handles.size() < objects) {
            handles.push_back(std::make_unique<message_handle>());
        }
        for (int i = 0; i < rounds; ++i) {
            for (auto &one : handles) {
                mine.push_back(one->acquire(state, end));
                EXPECT_EQ(find(mine.back()), &end);
            }
            for (auto &one : handles) {
                one->release();
            }
            if (i % 10 == 0) {
                handles[0] = std::make_unique<message_handle>();
            }
        }
        std::lock_guard<std::mutex> guard(mutex);
        for (uintptr_t word : mine) {
            EXPECT_TRUE(word != 0 && seen.insert(word).second) << "taken twice";
        }
        left.swap(handles);
    };
    for (int again = 0; again < 3; ++again) {
        std::vector<std::thread> threads;
        for (int i = 0; i < num_threads; ++i) {
            threads.emplace_back(use);
        }
        for (std::thread &one : threads) {
            one.join();
        }
    }
    for (uintptr_t old : seen) {
        ASSERT_EQ(find(old), nullptr);
    }
}

// One in 2^29 processes begins so low.
TEST(message_handles, begin_anywhere) {
    state_stub state;
    end_stub end;
    message_handle handle;
    EXPECT_GT(handle.acquire(state, end) >> 35, 0u);
}

TEST(message_handles, other_words_are_not_found) {
    state_stub state;
    end_stub end;
    message_handle handle;
    const uintptr_t word = handle.acquire(state, end);
    for (unsigned bit = 0; bit < 64; ++bit) {
        EXPECT_EQ(find(word ^ (uintptr_t(1) << bit)), nullptr) << bit;
    }
    EXPECT_EQ(find(0), nullptr);
    EXPECT_EQ(find(reinterpret_cast<uintptr_t>(&state)), nullptr);
}

TEST(message_handles, hundreds_of_thousands_at_a_time) {
    constexpr size_t number = 300000;
    state_stub state;
    end_stub end;
    const auto all = std::make_unique<message_handle[]>(number);
    std::set<uintptr_t> seen;
    for (size_t i = 0; i < number; ++i) {
        ASSERT_NE(all[i].acquire(state, end), 0u) << i;
        seen.insert(all[i].value());
    }
    EXPECT_EQ(seen.size(), number);
    for (size_t i = 0; i < number; ++i) {
        const uintptr_t word = all[i].value();
        ASSERT_EQ(find(word), &end);
        all[i].release();
        ASSERT_EQ(find(word), nullptr);
    }
}

bool run_out_in_little_memory() {
    constexpr size_t most_objects = size_t(1) << 20;
    state_stub state;
    end_stub end;
    auto all = std::make_unique<message_handle[]>(most_objects);
    // 24 MiB more than there is now: less than a million handles
    std::ifstream pages("/proc/self/statm");
    rlim_t now = 0;
    pages >> now;
    const rlim_t most = now * 4096 + (rlim_t(24) << 20);
    const rlimit limit{most, most};
    setrlimit(RLIMIT_AS, &limit);
    size_t number = 0;
    while (all[number].acquire(state, end) != 0) {
        if (++number == most_objects) {
            return false;
        }
    }
    message_handle another;
    const bool none_again = another.acquire(state, end) == 0;
    all.reset();  // gives the places back
    return none_again && number > 60000u && find(another.acquire(state, end)) == &end;
}

TEST(message_handles, run_out_without_harm_and_say_so) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the sanitizer takes more address space than the test allows";
#endif
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_EXIT(std::exit(run_out_in_little_memory() ? 0 : 1), testing::ExitedWithCode(0),
                "go through host memory for now");
}

}  // namespace
}  // namespace cuda_nc::dt::test
