// Who takes part in a collective call.
#pragma once

#include "hooks/mpich/pmpi.hpp"

namespace cuda_nc::hooks::local {

struct ranks {
    int mine = 0, own = 0;  // the caller's rank and group
    int others =
        0;  // ranks that the caller exchanges blocks with: the other group, if there is one
    bool between = false;  // two groups

    // Throws failure.
    explicit ranks(handle comm);
    bool receives_at(int root) const noexcept { return root == (between ? root_here : mine); }
    bool sends_to(int root) const noexcept { return !between || root >= 0; }
};

// Of a communicator with a topology.
class neighbours {
  public:
    int sources = 0, destinations = 0;

    // Sets the two numbers. False where there is no topology, or MPI reports an error.
    bool count(handle comm) noexcept;
    // After count(): what a rank sends itself MPICH copies with the CPU. False also where MPI
    // reports an error.
    bool has_self(handle comm) const;

  private:
    int kind_ = 0;  // a topology
};

}  // namespace cuda_nc::hooks::local
