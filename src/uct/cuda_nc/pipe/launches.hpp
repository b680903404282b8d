// Kernels that are to be launched when all that has arrived has been looked at, so that one launch
// serves several messages: it costs the CPU as much as all else of a message of a megabyte. And
// those in flight.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ucs/gpu/pipe.hpp"

namespace cuda_nc::uct {

class pipe_drive;

class pipe_launches {
  public:
    // False: no memory. The drive is admitted, and calls remove() when it is stopped before.
    bool add(pipe_drive &ready) noexcept;
    void remove(const pipe_drive &stopped) noexcept;
    // The kernel of a drive that was launched has left.
    void left(const pipe_drive &ended) noexcept;
    const std::vector<pipe_drive *> &in_flight() const noexcept { return in_flight_; }
    bool empty() const noexcept { return ready_.empty(); }

    // Launches up to one launch's worth; each drive is told. The numbers of their messages are
    // written to `messages`, how many is returned; 0: none can be launched now.
    static constexpr size_t most_sides = gpu::max_pipe_sides;
    size_t flush_some(uint64_t (&messages)[most_sides]) noexcept;

  private:
    std::vector<pipe_drive *> ready_;
    std::vector<pipe_drive *> in_flight_;  // with room for those that are ready
};

}  // namespace cuda_nc::uct
