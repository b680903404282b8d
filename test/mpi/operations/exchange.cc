#include "operations/exchange.hpp"

namespace mpi_test {

void exchange_samples(harness &t, const send_call &send, const receive_call &receive) {
    uint64_t number = 0;
    for (const sample &s : samples()) {
        for (int sender = 0; sender < 2; ++sender) {
            int tag = static_cast<int>(++number);
            typed_buffer buffer(t.device(), s.type, s.count, key_of(t.rank(), number));
            if (t.rank() == sender) {
                send(buffer.address(), s.count, s.type.handle(), t.peer(), tag);
            } else {
                receive(buffer.address(), s.count, s.type.handle(), t.peer(), tag);
                buffer.expect(packed_content(buffer.map(), key_of(t.peer(), number)));
            }
            t.expect(buffer.right(), s.type.text());
        }
    }
}

void plain_receive(void *buffer, int count, MPI_Datatype type, int peer, int tag) {
    MPI_Recv(buffer, count, type, peer, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void plain_send(const void *buffer, int count, MPI_Datatype type, int peer, int tag) {
    MPI_Send(buffer, count, type, peer, tag, MPI_COMM_WORLD);
}

}  // namespace mpi_test
