// Halo exchange: each rank with its 6 or 26 neighbours at once, periodic, any number of ranks.
#pragma once

#include "tools/perftest/message/plan.hpp"
#include "tools/perftest/message/report.hpp"
#include "tools/perftest/message/messenger.hpp"

namespace cuda_nc::tools {

// "halo6" or "halo26" of boxes of edge^3 elements of 8 bytes. The row is complete on rank 0; its
// time is that of a whole exchange on the slowest rank, its bytes what a rank sends in it.
message_row run_halo(messenger &by, const message_plan &plan, const std::string &test, int edge,
                     int width);

}  // namespace cuda_nc::tools
