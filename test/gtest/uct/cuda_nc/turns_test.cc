// Who waits for whom before a worker is progressed.
#include "uct/cuda_nc/turns.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "ucs/base/tick_clock.hpp"
#include "uct/cuda_nc/posting_thread.hpp"

namespace cuda_nc::uct {
namespace {

using clock = tick_clock;  // that of the waits
using progresses = posting_thread::progresses;

// One that does what it is told, and lives until the test has ended: so it is another one.
class other_thread {
  public:
    ~other_thread() {
        call_ = [this] { ends_ = true; };
        is_told_ = true;
        thread_.join();
    }
    void does(std::function<void()> call) {
        call_ = std::move(call);
        is_told_ = true;
        while (is_told_) {
            std::this_thread::yield();
        }
    }

  private:
    void run() {
        while (!ends_) {
            if (is_told_) {
                call_();
                is_told_ = false;
            } else {
                std::this_thread::yield();
            }
        }
    }

    std::function<void()> call_;
    std::atomic<bool> is_told_{false};
    bool ends_ = false;  // written and read in the thread
    std::thread thread_{[this] { run(); }};
};

// The shortest of many waits: a machine that is busy makes some of them long.
clock::duration shortest_await(worker_turns &turns, const std::function<void()> &before_each) {
    clock::duration shortest = clock::duration::max();
    for (int i = 0; i < 50; ++i) {
        before_each();
        const clock::time_point begin = clock::now();
        turns.await();
        shortest = std::min(shortest, clock::now() - begin);
    }
    return shortest;
}

void nothing() {}

class turns_test : public testing::Test {
  protected:
    ~turns_test() override { turns_.close(); }

    int worker_ = 0;
    const uint64_t before_ = worker_turns::number_opened();
    worker_turns &turns_ = *worker_turns::open(nullptr);
    other_thread other_;
};

TEST_F(turns_test, are_of_the_worker_that_they_were_given_to) {
    EXPECT_EQ(worker_turns::of(&worker_), nullptr);
    EXPECT_TRUE(worker_turns::give(&worker_, before_));
    EXPECT_EQ(worker_turns::of(&worker_), &turns_);
    EXPECT_FALSE(worker_turns::give(&worker_, before_)) << "they have been given";
}

TEST_F(turns_test, are_one_for_all_transports_of_a_worker) {
    int transports = 0;
    worker_turns *first = worker_turns::open(&transports),
                 *second = worker_turns::open(&transports);
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(first, second);
    EXPECT_NE(first, &turns_);
    EXPECT_TRUE(worker_turns::give(&transports, worker_turns::number_opened() - 1));
    first->close();
    EXPECT_EQ(worker_turns::of(&transports), second) << "one still uses it";
    second->close();
    EXPECT_EQ(worker_turns::of(&transports), nullptr);
}

TEST_F(turns_test, are_given_by_the_thread_that_opened_them) {
    other_.does([&] { EXPECT_FALSE(worker_turns::give(&worker_, before_)); });
    EXPECT_FALSE(worker_turns::give(&worker_, worker_turns::number_opened())) << "of before";
    EXPECT_TRUE(worker_turns::give(&worker_, before_));
}

TEST_F(turns_test, closed_ones_are_of_no_worker) {
    EXPECT_TRUE(worker_turns::give(&worker_, before_));
    const uint64_t before = worker_turns::number_opened();
    worker_turns *other = worker_turns::open(nullptr);
    int worker = 0;
    EXPECT_TRUE(worker_turns::give(&worker, before));
    EXPECT_EQ(worker_turns::of(&worker), other);
    other->close();
    EXPECT_EQ(worker_turns::of(&worker), nullptr);
    EXPECT_EQ(worker_turns::of(&worker_), &turns_);
}

TEST_F(turns_test, there_may_be_too_many_workers) {
    std::vector<worker_turns *> all;
    for (worker_turns *one; (one = worker_turns::open(nullptr)) != nullptr;) {
        all.push_back(one);
        ASSERT_LT(all.size(), 10000u);
    }
    EXPECT_GE(all.size(), 16u);
    for (worker_turns *one : all) {
        one->close();
    }
}

TEST_F(turns_test, whoever_posts_does_not_wait) {
    EXPECT_LT(shortest_await(turns_, [&] { turns_.note_post(); }), worker_turns::quiet);
}

TEST_F(turns_test, another_thread_waits_after_a_post_and_not_without) {
    EXPECT_GE(shortest_await(turns_, [&] { other_.does([&] { turns_.note_post(); }); }),
              worker_turns::quiet);
    EXPECT_LT(shortest_await(turns_, nothing), worker_turns::quiet);
}

TEST_F(turns_test, a_poster_that_progresses_has_its_turn_too) {
    other_.does([&] { turns_.note_post(); });
    EXPECT_GE(shortest_await(turns_, [&] { other_.does([&] { turns_.await(); }); }),
              worker_turns::quiet);
}

TEST_F(turns_test, after_something_was_progressed_nobody_waits_once) {
    const auto post = [&] { other_.does([&] { turns_.note_post(); }); };
    post();
    EXPECT_TRUE(turns_.await());
    turns_.go_on();
    post();
    EXPECT_FALSE(turns_.await());
    EXPECT_TRUE(turns_.await());
    EXPECT_FALSE(turns_.await()) << "nobody has posted since";
}

TEST_F(turns_test, a_wait_ends_although_posts_go_on) {
    const posting_thread poster(turns_, progresses::never);
    clock::duration longest = {};
    while (longest < worker_turns::most) {  // where the poster is not kept from running
        const clock::time_point begin = clock::now();
        turns_.await();
        longest = std::max(longest, clock::now() - begin);
        EXPECT_FALSE(turns_.is_left_to_poster()) << "it does not progress";
    }
}

TEST_F(turns_test, what_has_ended_is_left_to_a_thread_that_posts_and_progresses) {
    EXPECT_FALSE(turns_.is_left_to_poster());
    {
        const posting_thread poster(turns_, progresses::too);
        EXPECT_TRUE(await_until_left(turns_));
    }
    turns_.await();
    turns_.await();
    EXPECT_FALSE(turns_.is_left_to_poster()) << "it posts no more";
}

TEST_F(turns_test, nothing_is_left_to_a_thread_that_posts_after_the_one_that_progresses) {
    {
        const posting_thread poster(turns_, progresses::too);
        ASSERT_TRUE(await_until_left(turns_));
    }
    turns_.note_post();
    other_.does([&] { EXPECT_FALSE(turns_.is_left_to_poster()) << "this one does not progress"; });
}

TEST_F(turns_test, nobody_waits_where_threads_post_by_turns) {
    const auto both_post = [&] {
        turns_.note_post();
        other_.does([&] { turns_.note_post(); });
    };
    EXPECT_LT(shortest_await(turns_, both_post), worker_turns::quiet);
    const auto posts_much = [&] {
        other_.does([&] {
            for (int i = 0; i < 1000; ++i) {
                turns_.note_post();
            }
        });
    };
    EXPECT_GE(shortest_await(turns_, posts_much), worker_turns::quiet);
}

// As NIXL's does, of what UCP kept until an endpoint was connected.
TEST_F(turns_test, a_thread_that_has_posted_sometimes_waits_for_the_next_one) {
    for (int i = 0; i < 20; ++i) {
        turns_.note_post();
        turns_.note_post();
        other_.does([&] { turns_.note_post(); });
    }
    EXPECT_GE(shortest_await(turns_, [&] { other_.does([&] { turns_.note_post(); }); }),
              worker_turns::quiet);
}

TEST_F(turns_test, posters_of_a_worker_that_has_gone_are_forgotten) {
    for (int i = 0; i < 100; ++i) {
        turns_.note_post();
        other_.does([&] { turns_.note_post(); });
    }
    turns_.close();
    ASSERT_EQ(worker_turns::open(nullptr), &turns_);
    EXPECT_GE(shortest_await(turns_, [&] { other_.does([&] { turns_.note_post(); }); }),
              worker_turns::quiet);
}

}  // namespace
}  // namespace cuda_nc::uct
