// Halo exchange: each rank with its 6 or 26 neighbours at once, periodic, any number of ranks.
#pragma once

#include <string>

#include "tools/perftest/message/plan.hpp"
#include "tools/perftest/message/report.hpp"
#include "tools/perftest/message/messenger.hpp"

namespace cuda_nc::tools {

struct halo_options {
    int edge = 64, width = 1;      // of the box and of its halo, in elements of 8 bytes
    std::string way = "isend";     // as messenger::make_exchange() takes it
    bool contiguous_only = false;  // no datatype is made: the reference stands for the layouts too
};

// The layout column: "box-64", and the way where it is not isend.
std::string name_of(const halo_options &o);

// "halo6" or "halo26" of boxes of edge^3 elements. The row is complete on rank 0; its time is that
// of a whole exchange on the slowest rank, its bytes what a rank sends in it.
message_row run_halo(messenger &by, const message_plan &plan, const std::string &test,
                     const halo_options &o);

}  // namespace cuda_nc::tools
