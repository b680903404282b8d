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
struct neighbours {
    int sources = 0, destinations = 0;
    bool has_self = false;  // what a rank sends itself MPICH copies with the CPU

    // False where there is no topology, or MPI reports an error.
    bool find(handle comm);
};

}  // namespace cuda_nc::hooks::local
