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
int redirections;

class workers : public testing::Test {
  protected:
    workers() {
        redirections = 0;
        opened = nullptr;
        set_progress_redirection([](const ucx_instance &) noexcept { ++redirections; });
        while_creating([] { opened = worker_turns::open(); });
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
    // The fake's worker is the context.
    int8_t create(ucs_thread_mode_t mode) {
        ucp_worker_params_t params = {};
        params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
        params.thread_mode = mode;
        void *worker = nullptr;
        return worker_create(this, &params, &worker, nullptr);
    }
};

TEST_F(workers, of_many_threads_with_puts_have_turns) {
    EXPECT_EQ(create(UCS_THREAD_MODE_MULTI), UCS_OK);
    EXPECT_EQ(worker_turns::of(this), opened);
    EXPECT_EQ(redirections, 1);
}

TEST_F(workers, of_one_thread_at_a_time_have_none) {
    EXPECT_EQ(create(UCS_THREAD_MODE_SINGLE), UCS_OK);
    EXPECT_EQ(create(UCS_THREAD_MODE_SERIALIZED), UCS_OK);
    void *worker = nullptr;
    EXPECT_EQ(worker_create(this, nullptr, &worker, nullptr), UCS_OK);
    EXPECT_EQ(worker_turns::of(this), nullptr);
    EXPECT_EQ(redirections, 0);
}

TEST_F(workers, without_puts_have_none) {
    while_creating(nullptr);
    EXPECT_EQ(create(UCS_THREAD_MODE_MULTI), UCS_OK);
    EXPECT_EQ(worker_turns::of(this), nullptr);
    EXPECT_EQ(redirections, 0);
}

TEST_F(workers, that_could_not_be_made_have_none) {
    while_creating([] { opened = worker_turns::open(); }, UCS_ERR_NO_MEMORY);
    EXPECT_EQ(create(UCS_THREAD_MODE_MULTI), UCS_ERR_NO_MEMORY);
    EXPECT_EQ(worker_turns::of(this), nullptr);
    EXPECT_EQ(redirections, 0);
}

TEST_F(workers, are_progressed_whether_they_have_turns_or_not) {
    EXPECT_EQ(create(UCS_THREAD_MODE_MULTI), UCS_OK);
    const unsigned before = worker_progress(this, nullptr);
    EXPECT_EQ(worker_progress(this, nullptr), before + 1);
    EXPECT_EQ(worker_progress(&redirections, nullptr), before + 2);
}

TEST(two_ucx, a_worker_is_progressed_by_the_ucx_of_its_caller) {
    test::in_own_process([] {
        int worker = 0;
        for (const char *user : {test::first_user, test::first_user, test::second_user}) {
            worker_progress(&worker, test::code_of(user));
        }
        EXPECT_EQ(worker_progress(&worker, test::code_of(test::first_user)), 3u);
        EXPECT_EQ(worker_progress(&worker, test::code_of(test::second_user)), 2u);
    });
}

}  // namespace
}  // namespace cuda_nc::hooks
