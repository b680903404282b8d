#include "ucp/dt/message_handles.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <fstream>
#include <set>
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
    std::set<uintptr_t> seen;
    for (int i = 0; i < 10000; ++i) {
        uintptr_t handle = acquire_message_handle(state, end);
        ASSERT_NE(handle, 0u);
        ASSERT_EQ(handle & 7, message_handle_mark);
        ASSERT_TRUE(seen.insert(handle).second) << "taken twice";
        ASSERT_EQ(state_of_message_handle(handle), &state);
        ASSERT_EQ(find(handle), &end);
        release_message_handle(handle);
        ASSERT_EQ(find(handle), nullptr);
    }
    for (uintptr_t old : seen) {
        ASSERT_EQ(find(old), nullptr);
    }
}

// One in 2^29 processes begins so low.
TEST(message_handles, begin_anywhere) {
    state_stub state;
    end_stub end;
    uintptr_t handle = acquire_message_handle(state, end);
    EXPECT_GT(handle >> 35, 0u);
    release_message_handle(handle);
}

TEST(message_handles, other_words_are_not_found) {
    state_stub state;
    end_stub end;
    uintptr_t handle = acquire_message_handle(state, end);
    for (unsigned bit = 0; bit < 64; ++bit) {
        EXPECT_EQ(find(handle ^ (uintptr_t(1) << bit)), nullptr) << bit;
    }
    EXPECT_EQ(find(0), nullptr);
    EXPECT_EQ(find(reinterpret_cast<uintptr_t>(&state)), nullptr);
    release_message_handle(handle);
}

TEST(message_handles, hundreds_of_thousands_at_a_time) {
    state_stub state;
    end_stub end;
    std::vector<uintptr_t> taken;
    for (int i = 0; i < 300000; ++i) {
        taken.push_back(acquire_message_handle(state, end));
        ASSERT_NE(taken.back(), 0u) << i;
    }
    EXPECT_EQ(std::set<uintptr_t>(taken.begin(), taken.end()).size(), taken.size());
    for (uintptr_t handle : taken) {
        ASSERT_EQ(find(handle), &end);
        release_message_handle(handle);
        ASSERT_EQ(find(handle), nullptr);
    }
}

bool run_out_in_little_memory() {
    state_stub state;
    end_stub end;
    std::vector<uintptr_t> taken;
    taken.reserve(size_t(1) << 20);
    // 24 MiB more than there is now: less than a million handles
    std::ifstream pages("/proc/self/statm");
    rlim_t now = 0;
    pages >> now;
    const rlim_t most = now * 4096 + (rlim_t(24) << 20);
    const rlimit limit{most, most};
    setrlimit(RLIMIT_AS, &limit);
    while (uintptr_t handle = acquire_message_handle(state, end)) {
        if (taken.size() == taken.capacity()) {
            return false;
        }
        taken.push_back(handle);
    }
    const bool none_again = acquire_message_handle(state, end) == 0;
    const bool enough = taken.size() > 60000u;
    for (uintptr_t handle : taken) {
        release_message_handle(handle);
    }
    const uintptr_t again = acquire_message_handle(state, end);
    return none_again && enough && find(again) == &end;
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
