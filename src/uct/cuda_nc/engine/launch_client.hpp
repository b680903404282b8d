// What the scheduler asks of work that is to be launched: a pipe drive is such work.
#pragma once

#include <cstdint>
#include <memory>

#include "ucs/base/status.hpp"
#include "ucs/gpu/device.hpp"

namespace cuda_nc::uct {

class pooled_stream;

class launch_client {
  public:
    virtual int device() const noexcept = 0;        // ordinal
    virtual uint64_t message() const noexcept = 0;  // number of the message that it belongs to

    // Whether other work that is ready soon could begin together with it, by one launch: else it
    // gains nothing by waiting. Asked of orders, and of what is to be launched.
    virtual bool may_share() const noexcept { return true; }

    // Acquires what the launch needs beside channels and a stream. False: there is none now.
    virtual bool acquire_resources() noexcept { return true; }

    // Fills in what is to be launched on `on`. After an error launch_failed() follows.
    virtual ucs_status_t prepare(gpu::stream &on, gpu::pipe_work *work_p) noexcept = 0;
    // Exactly one of these follows scheduler::launch(), unless scheduler::cancel() came before.
    virtual void launched(const std::shared_ptr<pooled_stream> &on) noexcept = 0;
    virtual void launch_failed(ucs_status_t status) noexcept = 0;

    // The same work as an order for the GPU's mover. False: it needs a launch.
    virtual bool describe(gpu::move_order *) noexcept { return false; }
    // Exactly one of these follows scheduler::order() that admitted it, unless scheduler::cancel()
    // came before: `by` has taken it, or it is to be launched.
    virtual void ordered(gpu::mover & /*by*/, gpu::mover::ticket) noexcept {}
    virtual void order_refused() noexcept {}

    // After launched() or ordered(): its kernel has left, or the order has ended, and somebody has
    // to look at it.
    virtual bool has_left() const noexcept = 0;

  protected:
    ~launch_client() = default;
};

}  // namespace cuda_nc::uct
