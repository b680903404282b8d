// Who calls the completions of puts, and when.
#include "uct/cuda_nc/one_sided/mover.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>

#include "uct/cuda_nc/posting_thread.hpp"

namespace cuda_nc::uct {
namespace {

using clock = std::chrono::steady_clock;
using progresses = posting_thread::progresses;

class mover_test : public testing::Test {
  protected:
    mover_test() {
        ucx_.uct_worker_progress_register_safe = [](void *, unsigned (*)(void *), void *, unsigned,
                                                    int *id_p) { *id_p = 1; };
        ucx_.uct_worker_progress_unregister_safe = [](void *, int *id_p) { *id_p = -1; };
        put_.func = [](abi::uct_completion *) {};
    }

    // As a put that has ended already.
    void owe() {
        put_.count = 1;
        mover_.complete_with(0, &put_);
    }
    bool is_called() const { return put_.count == 0; }
    // Whether a put that ends while another thread posts and progresses is left to that thread.
    bool leaves() {
        if (!await_until_left(turns_)) {
            return false;
        }
        owe();
        mover_.progress();
        return !is_called();
    }
    // Nobody waits in between, so the posts are thought to go on.
    bool is_called_in_the_end() {
        const auto limit = clock::now() + std::chrono::seconds(20);
        while (!is_called() && clock::now() < limit) {
            mover_.progress();
        }
        return is_called();
    }

    ucx_api ucx_ = {};
    worker_turns &turns_ = *worker_turns::open(nullptr);
    list_mover mover_{ucx_, nullptr, &turns_};
    abi::uct_completion put_ = {};
};

TEST_F(mover_test, calls_what_has_ended_where_nobody_posts) {
    owe();
    EXPECT_EQ(mover_.progress(), 1u);
    EXPECT_TRUE(is_called());
    EXPECT_EQ(put_.status, UCS_OK);
}

TEST_F(mover_test, leaves_what_has_ended_to_a_thread_that_posts_and_progresses) {
    {
        const posting_thread poster(turns_, progresses::too);
        ASSERT_TRUE(leaves());
    }
    turns_.await();  // it posts no more
    turns_.await();
    mover_.progress();
    EXPECT_TRUE(is_called());
}

TEST_F(mover_test, leaves_it_for_some_milliseconds_at_most) {
    const posting_thread poster(turns_, progresses::too);
    ASSERT_TRUE(leaves());
    EXPECT_TRUE(is_called_in_the_end());
}

// Nobody has waited since it ended, so nobody has seen that.
TEST_F(mover_test, leaves_it_no_longer_once_nobody_posts) {
    {
        const posting_thread poster(turns_, progresses::too);
        ASSERT_TRUE(leaves());
    }
    ASSERT_TRUE(turns_.is_left_to_poster());
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    for (int i = 0; i < 3 && !is_called(); ++i) {
        mover_.progress();
        std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
    EXPECT_TRUE(is_called());
}

TEST_F(mover_test, the_thread_that_posts_calls_what_is_left_to_it) {
    std::atomic<bool> is_left{false};
    std::thread poster([&] {
        turns_.note_post();
        turns_.await();
        while (!is_left) {
            turns_.note_post();
        }
        mover_.progress();
    });
    is_left = leaves();
    const bool was_left = is_left;
    is_left = true;
    poster.join();
    ASSERT_TRUE(was_left);
    EXPECT_TRUE(is_called());
}

TEST_F(mover_test, leaves_nothing_to_a_thread_that_has_not_taken_it) {
    const posting_thread poster(turns_, progresses::too);
    ASSERT_TRUE(leaves());
    ASSERT_TRUE(is_called_in_the_end());
    for (int i = 0; i < 20; ++i) {
        turns_.await();
        EXPECT_FALSE(turns_.is_left_to_poster());
    }
}

// UCX says that a worker is flushed when all its completions have been called.
TEST_F(mover_test, a_flush_within_a_completion_waits_for_the_others) {
    struct two {
        list_mover *mover;
        ucs_status_t flushed;
        abi::uct_completion first, last;
    } both = {&mover_, UCS_OK, {}, {}};
    both.first.func = [](abi::uct_completion *self) {
        auto *all = reinterpret_cast<two *>(reinterpret_cast<char *>(self) - offsetof(two, first));
        all->flushed = all->mover->flush(nullptr);
    };
    both.last.func = [](abi::uct_completion *) {};
    both.first.count = both.last.count = 1;
    mover_.complete_with(0, &both.first);
    mover_.complete_with(0, &both.last);
    EXPECT_EQ(mover_.progress(), 2u);
    EXPECT_EQ(both.flushed, UCS_INPROGRESS);
    EXPECT_EQ(mover_.flush(nullptr), UCS_OK);
}

}  // namespace
}  // namespace cuda_nc::uct
