// What all message measurements share: agreement between the ranks, and how often to measure.
#pragma once

#include <string>
#include <vector>

#include "tools/perftest/message/plan.hpp"
#include "tools/perftest/message/messenger.hpp"
#include "tools/perftest/support/clock.hpp"

namespace cuda_nc::tools {

// The first non-empty text of any rank, by rank; empty where all are. The same on all ranks.
std::string agree(messenger &by, const std::string &mine);
// Rank 0's number, on all ranks.
double agree_number(messenger &by, double mine);
// Throws run_error where the messenger cannot send this layout from such memory.
void check_memory_of(const messenger &by, const layout &what, const std::string &memory);
// Every rank's numbers, by rank.
std::vector<std::vector<double>> gather_numbers(messenger &by, const std::vector<double> &mine);

// Exchanges in a sample, many enough that reading the clock takes no share of it, and the number of
// samples.
struct schedule {
    unsigned batch = 1, contiguous_batch = 1, samples = 1;
};
// Computed from rank 0's times of one exchange, in seconds.
schedule make_schedule(messenger &by, const message_plan &plan, double exchange_time,
                       double contiguous_time);

}  // namespace cuda_nc::tools
