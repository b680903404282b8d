// One message of the random types' test: two sides, each a datatype of the same packed size, and
// the calls that send and receive it. The same on every rank that gives the same seed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "support/made_type.hpp"
#include "support/random.hpp"

namespace mpi_test {

enum class send_call { isend, issend, persistent, count };
enum class receive_call { irecv, probe, persistent, count };

// One side of one message.
struct side {
    made_type type;
    int count;
    size_t region = 0;  // offset in the arena
    size_t base = 0;    // offset of the address that MPI is given
    bool in_host = false;
    bool bottom = false;  // absolute addresses and MPI_BOTTOM

    type_map bytes() const { return repeated(type.map(), count); }
};

struct message {
    int sender;
    send_call send_by;
    receive_call receive_by;
    side from;
    side to;
};

// `largest`: bytes of a message, about.
message random_message(random_stream &random, int64_t largest);

// Takes room for the side, with a guard around it, behind the first `*used_p` bytes of the arena.
void place(random_stream &random, side &s, size_t *used_p);

}  // namespace mpi_test
