// An order that a mover has been given, and its end: for one move that nothing else orders, in the
// place of a launch and a wait for it.
#pragma once

#include <chrono>

#include "ucs/base/status.hpp"
#include "ucs/gpu/device.hpp"
#include "ucs/gpu/mover.hpp"

namespace cuda_nc::gpu {

// Used by one thread at a time.
class given_order {
  public:
    given_order() = default;
    given_order(const given_order &) = delete;
    given_order &operator=(const given_order &) = delete;
    ~given_order() { forget(); }

    // What a launch of `work` would move; no stream orders it. False: it is too long, the GPU has
    // no mover, or that has not taken the order. Then `work` is to be launched and
    // launched_instead() to be called. No order is given before.
    bool give(device &on, const transfer &work) noexcept;
    static void launched_instead(device &on) noexcept;

    // Whether one was given since the last forget().
    bool is_given() const noexcept { return by_ != nullptr; }
    // UCS_INPROGRESS, UCS_OK, UCS_ERR_CANCELED: no byte has been touched, the move is to be
    // launched; UCS_ERR_IO_ERROR. Now and then it asks the GPU about an order that is overdue.
    ucs_status_t query() noexcept;
    ucs_status_t await() noexcept;
    // Waits for the end.
    void forget() noexcept;

  private:
    void note(ucs_status_t status) noexcept;

    mover *by_ = nullptr;
    mover::ticket which_ = 0;
    ucs_status_t status_ = UCS_OK;
    unsigned polls_ = 0;
    std::chrono::steady_clock::time_point polled_since_;
};

}  // namespace cuda_nc::gpu
