// Starts and completes the messages of a batch.
#pragma once

#include <vector>

#include "random_types/arena.hpp"
#include "random_types/message.hpp"

namespace mpi_test {

// Every message is complete on return. `sends_first`: this rank's sends are posted before its
// receives, which the peer's messages then find waiting or not.
void exchange(int rank, arena &memory, const std::vector<message> &messages, bool sends_first);

}  // namespace mpi_test
