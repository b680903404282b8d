#include "ucp/dt/message_handles.hpp"

#include <gtest/gtest.h>

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

TEST(message_handles, run_out_without_harm) {
    state_stub state;
    end_stub end;
    std::vector<uintptr_t> taken;
    while (uintptr_t handle = acquire_message_handle(state, end)) {
        ASSERT_LT(taken.size(), size_t(1) << 17);
        taken.push_back(handle);
    }
    EXPECT_GT(taken.size(), 60000u);
    for (uintptr_t handle : taken) {
        release_message_handle(handle);
    }
    uintptr_t again = acquire_message_handle(state, end);
    EXPECT_NE(again, 0u);
    release_message_handle(again);
}

}  // namespace
}  // namespace cuda_nc::dt::test
