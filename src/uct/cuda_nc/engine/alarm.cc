#include "uct/cuda_nc/engine/alarm.hpp"

#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <utility>

#include "ucs/base/log.hpp"

namespace cuda_nc::uct {
namespace {

bool add(const file_descriptor &set, int member) noexcept {
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.fd = member;
    return epoll_ctl(set.number(), EPOLL_CTL_ADD, member, &event) == 0;
}

bool set_timer(const file_descriptor &timer, std::chrono::nanoseconds after) noexcept {
    constexpr int64_t second = 1000000000;
    itimerspec when = {};
    when.it_value.tv_sec = static_cast<time_t>(after.count() / second);
    when.it_value.tv_nsec = static_cast<long>(after.count() % second);
    return timerfd_settime(timer.number(), 0, &when, nullptr) == 0;
}

}  // namespace

int alarm::stand_in_front_of(int carriers) noexcept {
    if (both_) {
        return both_.number();
    }
    file_descriptor made(epoll_create1(EPOLL_CLOEXEC));
    if (!made || !add(made, carriers)) {
        nc_debug("no descriptor is left for an alarm");
        return carriers;
    }
    both_ = std::move(made);
    return both_.number();
}

bool alarm::have_timer() noexcept {
    if (!timer_ && both_) {
        file_descriptor made(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
        if (made && add(both_, made.number())) {
            timer_ = std::move(made);
        }
    }
    return static_cast<bool>(timer_);
}

// Setting a timer forgets that it has run out: nobody has to read it.
bool alarm::set(std::chrono::nanoseconds after) noexcept {
    is_set_ = have_timer() && set_timer(timer_, std::max(after, std::chrono::nanoseconds(1)));
    return is_set_;
}

void alarm::clear() noexcept {
    if (is_set_) {
        set_timer(timer_, std::chrono::nanoseconds(0));
        is_set_ = false;
    }
}

}  // namespace cuda_nc::uct
