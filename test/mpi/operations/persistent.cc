// Requests that are started again with other bytes in the same buffers.
#include <vector>

#include "operations/exchange.hpp"

namespace mpi_test {
namespace {

using make_send = int (*)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

void start_twice(harness &t, make_send send) {
    for (const sample &s : samples()) {
        typed_buffer out(t.device(), s.type, s.count, 1), in(t.device(), s.type, s.count, 1);
        MPI_Request requests[2];
        MPI_Recv_init(in.address(), s.count, s.type.handle(), t.peer(), 1, MPI_COMM_WORLD,
                      &requests[0]);
        send(out.address(), s.count, s.type.handle(), t.peer(), 1, MPI_COMM_WORLD, &requests[1]);
        for (uint64_t round = 0; round < 2; ++round) {
            out.refill(key_of(t.rank(), round));
            in.refill(7 + round);
            MPI_Startall(2, requests);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            in.expect(packed_content(in.map(), key_of(t.peer(), round)));
            t.expect(in.right() && out.right(),
                     "start " + std::to_string(round) + " of " + s.type.text());
        }
        MPI_Request_free(&requests[0]);
        MPI_Request_free(&requests[1]);
    }
}

void persistent(harness &t) {
    start_twice(t, MPI_Send_init);
}

void persistent_synchronous(harness &t) {
    start_twice(t, MPI_Ssend_init);
}

const registration tests[] = {{"persistent", persistent},
                              {"persistent_synchronous", persistent_synchronous}};

}  // namespace
}  // namespace mpi_test
