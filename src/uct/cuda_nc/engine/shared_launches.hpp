// Work that is to be launched when everything that has arrived has been looked at, so that one
// launch serves several messages: a launch costs the CPU as much as all else of a message of a
// megabyte. And the work whose kernels are in flight.
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

    // Gives orders to a mover, or makes one launch at most; each client hears what became of it.
    // Writes the numbers of their messages to `messages` and returns how many; 0: no stream is free
    // now.
    static constexpr size_t most_clients = 32;  // orders of one set; a launch has fewer
    size_t flush_some(uint64_t (&messages)[most_clients]) noexcept;

  private:
    size_t give_some(gpu::mover &by, int device, uint64_t (&messages)[most_clients]) noexcept;

    std::vector<launch_client *> ready_;
    std::vector<launch_client *> in_flight_;  // with room for those that are ready
};

}  // namespace cuda_nc::uct
