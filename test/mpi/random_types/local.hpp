// Calls in which Open MPI, not UCX, packs and copies a datatype's bytes.
#pragma once

#include <vector>

#include "random_types/arena.hpp"
#include "random_types/message.hpp"

namespace mpi_test {

enum class local_call { pack, gather, alltoall, bsend, replace, count };

// The same on both ranks.
local_call local_call_of(const message &m);

// Makes one call for each message, complete on return: packs `from` and unpacks it to `to`, or
// copies it there by a collective of one rank; buffers it and sends it; or exchanges `to`, in
// place, with the peer. Collective. Returns the messages whose packed bytes were wrong.
std::vector<const message *> move_locally(int rank, arena &memory,
                                          const std::vector<message> &messages,
                                          const std::vector<char> &content);

// What the arena of this rank holds after the call.
void expect_local(int rank, arena &memory, const message &m, const std::vector<char> *contents);

}  // namespace mpi_test
