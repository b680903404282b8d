// The ways in which an MPI exchanges messages with several peers.
#pragma once

#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

#include "tools/perftest/message/exchange.hpp"

namespace cuda_nc::tools {

// Names: "isend", which every messenger has, and those that make_mpi_exchange() takes.
const std::vector<std::string> &exchange_ways();

// Between all ranks of MPI_COMM_WORLD, all of which make it; all types are of mpi_messenger.
// "persistent": requests made once, started each time. "alltoallw": MPI_Alltoallw, the messages of
// two ranks joined into one. "neighbor": MPI_Neighbor_alltoallw, an edge for each message. Throws
// run_error.
std::unique_ptr<message_exchange> make_mpi_exchange(const std::string &way, const void *from,
                                                    void *to,
                                                    const std::vector<exchanged_message> &messages);

}  // namespace cuda_nc::tools
