// Work that is ready for a GPU. What the GPU's mover takes as an order begins at once. The rest is
// launched when everything that has arrived has been looked at, so that one launch serves several
// messages: a launch costs the CPU as much as all else of a message of a megabyte. And the work
// that is in flight.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ucs/gpu/mover.hpp"
#include "ucs/gpu/pipe.hpp"

namespace cuda_nc::uct {

class launch_client;

class shared_launches {
  public:
    // False: no memory.
    bool add(launch_client &ready) noexcept;
    // The work is stopped before it was launched.
    void remove(const launch_client &stopped) noexcept;
    // The kernel of launched work has left.
    void left(const launch_client &ended) noexcept;
    const std::vector<launch_client *> &in_flight() const noexcept { return in_flight_; }
    bool empty() const noexcept { return ready_.empty(); }

    // Gives what is new to the GPUs' movers. Each client is tried once.
    void give_orders() noexcept;
    // Makes one launch at most, of work that has been tried as an order; each client hears what
    // became of it. Writes the numbers of their messages to `messages` and returns how many; 0: no
    // stream is free now.
    size_t launch_some(uint64_t (&messages)[gpu::max_pipe_sides]) noexcept;

  private:
    std::vector<launch_client *> ready_;
    size_t tried_ = 0;                        // the first of them: movers have not taken these
    std::vector<launch_client *> in_flight_;  // with room for those that are ready
};

}  // namespace cuda_nc::uct
