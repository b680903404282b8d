#include "ucs/exec/host/thread_pool.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>

#include <atomic>
#include <climits>
#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

#include "ucs/exec/host/thread_settings.hpp"
#include "ucs/base/compiler.hpp"

namespace cuda_nc::exec {
namespace {

using clock = std::chrono::steady_clock;
using test::result_of_child;

// False where it does not come true in half a minute.
template <class Condition>
bool comes_true(Condition &&condition) {
    const clock::time_point end = clock::now() + std::chrono::seconds(30);
    while (!condition()) {
        if (clock::now() > end) {
            return false;
        }
        sched_yield();
    }
    return true;
}

template <class Action>
bool run(unsigned helpers, uint64_t parts, const Action &action) {
    auto work = [](const void *what, uint64_t part) noexcept {
        (*static_cast<const Action *>(what))(part);
    };
    return thread_pool::instance()->run(helpers, parts, work, &action);
}

// Two parts that meet: each waits until another thread has the other.
bool two_threads_meet() {
    std::atomic<unsigned> there{0};
    std::atomic<bool> met{true};
    const bool ran = run(1, 2, [&](uint64_t) {
        ++there;
        met = comes_true([&] { return there == 2; }) && met;
    });
    return ran && met;
}

TEST(thread_pool, each_part_is_done_once) {
    for (unsigned round = 0; round < 2000; ++round) {
        const uint64_t parts = 1 + round % 60;
        std::vector<std::atomic<unsigned>> done(parts);
        ASSERT_TRUE(run(1 + round % 3, parts, [&](uint64_t part) { ++done[part]; }));
        for (uint64_t part = 0; part < parts; ++part) {
            ASSERT_EQ(done[part], 1u) << "part " << part << " of " << parts;
        }
    }
}

TEST(thread_pool, parts_are_done_on_several_threads) {
    EXPECT_TRUE(two_threads_meet());
    EXPECT_GE(thread_pool::instance()->num_threads(), 1u);
}

TEST(thread_pool, a_second_caller_is_refused_and_does_not_wait) {
    std::atomic<unsigned> refused{0}, calls{0};
    const bool ran = run(2, 8, [&](uint64_t) {
        ++calls;
        refused += !run(1, 4, [&](uint64_t) { calls += 100; });
    });
    EXPECT_TRUE(ran);
    EXPECT_EQ(calls, 8u);
    EXPECT_EQ(refused, 8u);
}

TEST(thread_pool, its_threads_have_a_name_and_take_no_signals) {
    std::atomic<unsigned> there{0}, others{0}, checked{0};
    const pthread_t caller = pthread_self();
    ASSERT_TRUE(run(1, 2, [&](uint64_t) {
        ++there;
        comes_true([&] { return there == 2; });
        if (pthread_equal(caller, pthread_self()) != 0) {
            return;
        }
        ++others;
        char name[32] = "";
        pthread_getname_np(pthread_self(), name, sizeof(name));
        sigset_t blocked;
        pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
        bool all = true;
        for (int number : {SIGINT, SIGTERM, SIGALRM, SIGUSR1, SIGCHLD, SIGPROF, SIGRTMIN + 1}) {
            all = all && sigismember(&blocked, number) == 1;
        }
        checked += all && std::strcmp(name, "cuda_nc_host") == 0;
    }));
    EXPECT_GE(others, 1u);
    EXPECT_EQ(checked, others);
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    EXPECT_EQ(sigismember(&blocked, SIGTERM), 0);
}

TEST(thread_pool, idle_threads_leave_and_come_back) {
    thread_pool::set_limits_for_test(std::chrono::milliseconds(1), UINT_MAX);
    thread_pool *const pool = thread_pool::instance();
    for (unsigned round = 0; round < 3; ++round) {
        EXPECT_TRUE(two_threads_meet());
        EXPECT_TRUE(comes_true([&] { return pool->num_threads() == 0; }));
    }
    thread_pool::reset_limits_for_test();
}

// The thread sanitizer allows a child no threads.
#if !CUDA_NC_TSAN
TEST(thread_pool, a_child_has_its_own) {
    std::atomic<bool> stop{false};
    std::atomic<unsigned> rounds{0};
    std::thread busy([&] {  // the pool is in any state when the process forks
        for (; !stop; ++rounds) {
            run(2, 16, [](uint64_t) {});
        }
    });
    EXPECT_TRUE(comes_true([&] { return rounds > 10; }));
    for (unsigned i = 0; i < 20; ++i) {
        const int result = result_of_child([] {
            const bool none = thread_pool::instance()->num_threads() == 0;
            const bool meet = two_threads_meet() && two_threads_meet();
            return (none ? 0 : 1) + (meet ? 0 : 2);
        });
        ASSERT_EQ(result, 0);
    }
    stop = true;
    busy.join();
    EXPECT_TRUE(two_threads_meet());
}

TEST(thread_pool, fewer_threads_than_wanted_do_the_work) {
    for (unsigned most : {0u, 1u}) {
        const int result = result_of_child([most] {
            thread_pool::set_limits_for_test(std::chrono::seconds(1), most);
            testing::internal::CaptureStderr();
            for (unsigned round = 0; round < 20; ++round) {
                std::atomic<unsigned> done{0};
                const bool ran = run(3, 9, [&](uint64_t) { ++done; });
                if (ran != (most != 0) || done != (ran ? 9u : 0u)) {
                    return 1;
                }
            }
            const std::string text = testing::internal::GetCapturedStderr();
            const size_t first = text.find("no more can be made");
            const bool once = first != std::string::npos &&
                              text.find("no more can be made", first + 1) == std::string::npos;
            return (once ? 0 : 2) + (thread_pool::instance()->num_threads() == most ? 0 : 4);
        });
        EXPECT_EQ(result, 0) << "at most " << most;
    }
}

TEST(thread_pool, threads_do_not_keep_a_process) {
    const int result = result_of_child([] {
        thread_pool::set_limits_for_test(std::chrono::milliseconds(1), UINT_MAX);
        if (!two_threads_meet()) {
            return 1;
        }
        syscall(SYS_exit, 0);  // of this thread: the last one to leave ends the process
        return 2;
    });
    EXPECT_EQ(result, 0);
}

TEST(thread_pool, a_process_may_end_while_parts_are_done) {
    for (unsigned i = 0; i < 10; ++i) {
        const int result = result_of_child([] {
            static std::atomic<unsigned> rounds;
            rounds = 0;
            std::thread([] {
                for (;; ++rounds) {
                    run(2, 16, [](uint64_t) {});
                }
            }).detach();
            if (!comes_true([] { return rounds > 20; })) {
                return 1;
            }
            std::exit(5);
        });
        EXPECT_EQ(result, 5);
    }
}
#endif

}  // namespace
}  // namespace cuda_nc::exec
