// What wakes a worker that sleeps.
#include "uct/cuda_nc/engine/alarm.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

namespace cuda_nc::uct {
namespace {

using std::chrono::milliseconds;

class alarms : public testing::Test {
  protected:
    bool wakes(int descriptor, int ms = 0) {
        pollfd one = {descriptor, POLLIN, 0};
        return poll(&one, 1, ms) == 1;
    }
    void carrier_has_news() {
        const uint64_t one = 1;
        ASSERT_EQ(write(carriers_.number(), &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
    }
    void news_are_read() {
        uint64_t all;
        ASSERT_EQ(read(carriers_.number(), &all, sizeof(all)), static_cast<ssize_t>(sizeof(all)));
    }

    file_descriptor carriers_{eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    alarm alarm_;
};

TEST_F(alarms, let_the_carrier_wake_as_it_would_without_them) {
    const int front = alarm_.stand_in_front_of(carriers_.number());
    EXPECT_NE(front, carriers_.number());
    EXPECT_EQ(alarm_.stand_in_front_of(carriers_.number()), front);
    EXPECT_FALSE(wakes(front));
    carrier_has_news();
    EXPECT_TRUE(wakes(front));
    EXPECT_TRUE(wakes(front)) << "as long as nobody has read them";
    news_are_read();
    EXPECT_FALSE(wakes(front));
}

TEST_F(alarms, wake_when_the_time_has_come_and_once_more_only_when_set_again) {
    const int front = alarm_.stand_in_front_of(carriers_.number());
    ASSERT_TRUE(alarm_.set(milliseconds(60000)));
    EXPECT_FALSE(wakes(front, 1));
    ASSERT_TRUE(alarm_.set(milliseconds(1)));
    EXPECT_TRUE(wakes(front, 10000));
    EXPECT_TRUE(wakes(front)) << "until the worker is about to sleep again";
    ASSERT_TRUE(alarm_.set(milliseconds(60000)));
    EXPECT_FALSE(wakes(front));
    ASSERT_TRUE(alarm_.set(milliseconds(0)));
    EXPECT_TRUE(wakes(front, 10000)) << "no time is not never";
    alarm_.clear();
    EXPECT_FALSE(wakes(front));
}

// UCX puts an interface's descriptor into a set of its own, which the program may put into another.
TEST_F(alarms, wake_who_watches_the_workers_descriptor_in_sets_of_sets) {
    const int front = alarm_.stand_in_front_of(carriers_.number());
    const file_descriptor of_worker(epoll_create1(EPOLL_CLOEXEC)),
        of_program(epoll_create1(EPOLL_CLOEXEC));
    epoll_event event = {};
    event.events = EPOLLIN | EPOLLET;
    ASSERT_EQ(epoll_ctl(of_worker.number(), EPOLL_CTL_ADD, front, &event), 0);
    event.events = EPOLLIN;
    ASSERT_EQ(epoll_ctl(of_program.number(), EPOLL_CTL_ADD, of_worker.number(), &event), 0);
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(alarm_.set(milliseconds(1)));
        EXPECT_EQ(epoll_wait(of_program.number(), &event, 1, 10000), 1);
        EXPECT_EQ(epoll_wait(of_worker.number(), &event, 1, 10000), 1) << "edge " << i;
    }
}

TEST_F(alarms, leave_the_carrier_its_place_where_descriptors_run_out) {
    rlimit limit;
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const rlimit before = limit;
    limit.rlim_cur = 0;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    const int front = alarm_.stand_in_front_of(carriers_.number());
    const bool is_set = alarm_.set(milliseconds(1));
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_EQ(front, carriers_.number());
    EXPECT_FALSE(is_set);
    alarm_.clear();
}

}  // namespace
}  // namespace cuda_nc::uct
