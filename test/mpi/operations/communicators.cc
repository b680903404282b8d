// Other communicators than the world.
#include "operations/exchange.hpp"

namespace mpi_test {
namespace {

void exchange_over(harness &t, MPI_Comm over, int peer) {
    for (const sample &s : few_samples()) {
        typed_buffer out(t.device(), s.type, s.count, key_of(t.rank(), 1));
        typed_buffer in(t.device(), s.type, s.count, 7);
        MPI_Sendrecv(out.address(), s.count, s.type.handle(), peer, 1, in.address(), s.count,
                     s.type.handle(), peer, 1, over, MPI_STATUS_IGNORE);
        in.expect(packed_content(in.map(), key_of(t.peer(), 1)));
        t.expect(in.right() && out.right(), s.type.text());
    }
}

void duplicated_communicator(harness &t) {
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    exchange_over(t, copy, t.peer());
    MPI_Comm_free(&copy);
}

void intercommunicator(harness &t) {
    MPI_Comm between;
    MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, t.peer(), 1, &between);
    exchange_over(t, between, 0);
    MPI_Comm_free(&between);
}

const registration tests[] = {{"duplicated_communicator", duplicated_communicator},
                              {"intercommunicator", intercommunicator}};

}  // namespace
}  // namespace mpi_test
