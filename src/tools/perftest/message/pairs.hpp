// Measures all pairs of ranks at once and each pair alone: rank i of the first half with rank i of
// the second.
#pragma once

#include "tools/perftest/message/point_to_point.hpp"

namespace cuda_nc::tools {

// "pairs" (one way) or "pairs-bidir"; a row for each pair, complete on rank 0, its time that of a
// message while all pairs are at work.
std::vector<message_row> run_pairs(messenger &by, const message_plan &plan, const layout_case &what,
                                   const std::string &test);

}  // namespace cuda_nc::tools
