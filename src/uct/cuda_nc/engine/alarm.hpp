// Wakes a worker that sleeps. UCX's workers sleep until one of their interfaces' descriptors can be
// read; what no carrier tells of, that a process has gone for one, is looked for by the clock.
//
// Who never sleeps pays for one descriptor, made with the interface; the timer is made when it is
// set first. Used with UCX's worker locked.
#pragma once

#include <chrono>

#include "ucs/base/file_descriptor.hpp"

namespace cuda_nc::uct {

class alarm {
  public:
    // A descriptor that can be read while `carriers` can, or once the time has come: the carrier's
    // interface gives its place up to it. It lives as long as this object, and is always the same.
    // Where the system has no descriptor left it is `carriers`, and nobody is woken by the clock.
    int stand_in_front_of(int carriers) noexcept;

    // The time: `after` from now, in place of an earlier one. False: nobody will be woken.
    bool set(std::chrono::nanoseconds after) noexcept;
    // There is none.
    void clear() noexcept;

  private:
    bool have_timer() noexcept;

    file_descriptor both_;  // an epoll set
    file_descriptor timer_;
    bool is_set_ = false;
};

}  // namespace cuda_nc::uct
