// Which workers have turns, and where progress of a worker goes, over a fake UCP.
#include "hooks/common/workers.hpp"

#include <gtest/gtest.h>
#include <ucp/api/ucp.h>

#include "hooks/two_ucx.hpp"
#include "uct/cuda_nc/turns.hpp"

namespace cuda_nc::hooks {
namespace {

using test::find_in_fake;
using uct::worker_turns;

worker_turns *opened;
const void *redirected;

void open_turns() {
    if (opened != nullptr) {
        opened->close();
    }
    opened = worker_turns::open(nullptr);
}

class workers : public testing::Test {
  protected:
    workers() {
        redirected = nullptr;
        opened = nullptr;
        set_progress_redirection([](const void *in) noexcept { redirected = in; });
        while_creating(open_turns);
    }
    ~workers() override {
        if (opened != nullptr) {
            opened->close();
        }
        set_progress_redirection(nullptr);
        while_creating(nullptr);
    }

    static void while_creating(void (*call)(), ucs_status_t status = UCS_OK) {
        find_in_fake<void (*)(void (*)(), int8_t)>("libucp_fake.so", "fake_ucp_while_creating")(
            call, static_cast<int8_t>(status));
    }
    // The fake's worker is the context. UCX gives it this mode.
    int8_t create(ucs_thread_mode_t mode) {
        find_in_fake<void (*)(uint32_t)>("libucp_fake.so", "fake_ucp_set_thread_mode")(mode);
        void *worker = nullptr;
        return worker_create(this, nullptr, &worker, caller);
    }

    const void *const caller = reinterpret_cast<const void *>(open_turns);
};

TEST_F(workers, of_many_threads_with_puts_have_turns) {
    EXPECT_EQ(create(UCS_THREAD_MODE_MULTI), UCS_OK);
    ASSERT_NE(opened, nullptr);
    EXPECT_EQ(worker_turns::of(this), opened);
    EXPECT_EQ(redirected, caller);
}

TEST_F(workers, of_one_thread_at_a_time_have_none) {
    EXPECT_EQ(create(UCS_THREAD_MODE_SINGLE), UCS_OK);
    EXPECT_EQ(create(UCS_THREAD_MODE_SERIALIZED), UCS_OK);
    EXPECT_EQ(worker_turns::of(this), nullptr);
    EXPECT_EQ(redirected, nullptr);
}

TEST_F(workers, without_puts_have_none) {
    while_creating(nullptr);
    EXPECT_EQ(create(UCS_THREAD_MODE_MULTI), UCS_OK);
    EXPECT_EQ(worker_turns::of(this), nullptr);
    EXPECT_EQ(redirected, nullptr);
}

TEST_F(workers, that_could_not_be_made_have_none) {
    while_creating(open_turns, UCS_ERR_NO_MEMORY);
    EXPECT_EQ(create(UCS_THREAD_MODE_MULTI), UCS_ERR_NO_MEMORY);
    EXPECT_EQ(worker_turns::of(this), nullptr);
    EXPECT_EQ(redirected, nullptr);
}

TEST_F(workers, are_progressed_whether_they_have_turns_or_not) {
    EXPECT_EQ(create(UCS_THREAD_MODE_MULTI), UCS_OK);
    const unsigned before = worker_progress(this);
    EXPECT_EQ(worker_progress(this), before + 1);
    EXPECT_EQ(worker_progress(&redirected), before + 2);
}

// As in UCX's own call, all of whose frames are C's: a tcp transport waits for its sockets there.
TEST_F(workers, may_be_left_by_a_thread_that_is_cancelled) {
    EXPECT_EQ(create(UCS_THREAD_MODE_MULTI), UCS_OK);
    test::expect_leavable([this] { worker_progress(this); });
}

// A second UCX is left alone: calls of its users go to it, as they do without us.
TEST(two_ucx, workers_of_the_first_one_have_turns) {
    test::in_own_process([] {
        redirected = nullptr;
        set_progress_redirection([](const void *in) noexcept { redirected = in; });
        for (const char *ucp : {test::first_ucp, test::second_ucp}) {
            find_in_fake<void (*)(void (*)(), int8_t)>(ucp, "fake_ucp_while_creating")(open_turns,
                                                                                       UCS_OK);
            find_in_fake<void (*)(uint32_t)>(ucp,
                                             "fake_ucp_set_thread_mode")(UCS_THREAD_MODE_MULTI);
        }
        int first = 0, second = 0;
        void *worker = nullptr;
        EXPECT_EQ(worker_create(&first, nullptr, &worker, test::code_of(test::first_user)), UCS_OK);
        EXPECT_NE(worker_turns::of(&first), nullptr);
        EXPECT_EQ(worker_create(&second, nullptr, &worker, test::code_of(test::second_user)),
                  UCS_OK);
        EXPECT_EQ(worker_turns::of(&second), nullptr);
        EXPECT_EQ(redirected, test::code_of(test::first_user));
        const auto of_second =
            find_in_fake<unsigned (*)(void *)>(test::second_ucp, "ucp_worker_progress");
        worker_progress(&first);
        worker_progress(&first);
        EXPECT_EQ(of_second(&second), 1u);
    });
}

}  // namespace
}  // namespace cuda_nc::hooks
