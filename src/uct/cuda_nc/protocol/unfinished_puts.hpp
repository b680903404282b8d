// Puts of messages that have gone another way: the carrier may still read their slots, and write to
// the receiver's. The slots are kept until the puts have ended; only then the receiver is told that
// nobody writes any more. Used with UCX's worker locked.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "uct/cuda_nc/protocol/control_channel.hpp"
#include "uct/cuda_nc/protocol/put_slots.hpp"

namespace cuda_nc::uct {

class unfinished_puts {
  public:
    unfinished_puts(control_channel &control, progress_hook &progress) noexcept
        : control_(control), progress_(progress) {}

    // Keeps `slots`, then says cancel over `ep` to the receiver's message `to` about ours, `from`.
    // Nothing is said where `to` is 0 or `ep` null.
    void add(std::unique_ptr<put_slots> slots, endpoint *ep, uint64_t to, uint64_t from) noexcept;
    unsigned progress() noexcept;  // how many have ended
    void endpoint_closed(const endpoint &ep) noexcept;
    bool empty() const noexcept { return all_.empty(); }

    // Hands over all slots to `to`, which keeps them until the carrier's interface is closed.
    void keep_all(std::vector<std::unique_ptr<put_slots>> &to) noexcept;

  private:
    struct unfinished {
        std::unique_ptr<put_slots> slots;
        endpoint *ep;
        uint64_t to, from;
    };

    control_channel &control_;
    progress_hook &progress_;
    std::vector<unfinished> all_;
};

}  // namespace cuda_nc::uct
