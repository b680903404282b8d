// Orders that a mover has been given, and their end: for moves that nothing else orders, in the
// place of a launch and a wait for it.
#pragma once

#include <chrono>
#include <cstddef>

#include "ucs/base/status.hpp"
#include "ucs/base/tick_clock.hpp"
#include "ucs/gpu/device.hpp"
#include "ucs/gpu/mover.hpp"

namespace cuda_nc::gpu {

// Used by one thread at a time.
class given_orders {
  public:
    static constexpr size_t most = 16;

    given_orders() = default;
    given_orders(const given_orders &) = delete;
    given_orders &operator=(const given_orders &) = delete;
    ~given_orders() { forget(); }

    // What a launch of `work` would move; no stream orders it. False: it is too long, the GPU has
    // no mover, or that has not taken the order. Then `work` is to be launched and
    // launched_instead() to be called. No order is given before.
    bool give(device &on, const transfer &work, giving how = {}) noexcept;
    // The same for `number` orders that end together, 1 to `most`. True where the mover has taken
    // any.
    bool give(device &on, const move_order *orders, size_t number, giving how = {}) noexcept;
    static void launched_instead(device &on) noexcept;

    // Whether any was given since the last forget().
    bool is_given() const noexcept { return by_ != nullptr; }
    // UCS_INPROGRESS; UCS_OK; UCS_ERR_CANCELED: some have not been moved, no byte of them has been
    // touched, and all are to be launched; UCS_ERR_IO_ERROR. Now and then it asks the GPU about an
    // order that is overdue.
    ucs_status_t query() noexcept;
    ucs_status_t await() noexcept;
    // Waits for the end.
    void forget() noexcept;

  private:
    void note(ucs_status_t status) noexcept;

    mover *by_ = nullptr;
    mover::ticket tickets_[most];
    size_t under_way_ = 0;          // the last of tickets_ whose end has not been seen
    ucs_status_t status_ = UCS_OK;  // of those that have ended
    unsigned polls_ = 0;
    tick_clock::time_point polled_since_;
};

}  // namespace cuda_nc::gpu
