// One message at a time, by each blocking call.
#include <vector>

#include "operations/exchange.hpp"

namespace mpi_test {
namespace {

void send(harness &t) {
    exchange_samples(t, plain_send, plain_receive);
}

void ssend(harness &t) {
    exchange_samples(
        t,
        [](const void *buffer, int count, MPI_Datatype type, int peer, int tag) {
            MPI_Ssend(buffer, count, type, peer, tag, MPI_COMM_WORLD);
        },
        plain_receive);
}

void bsend(harness &t) {
    exchange_samples(
        t,
        [](const void *buffer, int count, MPI_Datatype type, int peer, int tag) {
            int room = 0;
            MPI_Pack_size(count, type, MPI_COMM_WORLD, &room);
            std::vector<char> attached(static_cast<size_t>(room) + MPI_BSEND_OVERHEAD);
            MPI_Buffer_attach(attached.data(), static_cast<int>(attached.size()));
            MPI_Bsend(buffer, count, type, peer, tag, MPI_COMM_WORLD);
            void *start = nullptr;
            MPI_Buffer_detach(&start, &room);
        },
        plain_receive);
}

void rsend(harness &t) {
    exchange_samples(
        t,
        [](const void *buffer, int count, MPI_Datatype type, int peer, int tag) {
            MPI_Recv(nullptr, 0, MPI_BYTE, peer, 1000 + tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Rsend(buffer, count, type, peer, tag, MPI_COMM_WORLD);
        },
        [](void *buffer, int count, MPI_Datatype type, int peer, int tag) {
            MPI_Request request;
            MPI_Irecv(buffer, count, type, peer, tag, MPI_COMM_WORLD, &request);
            MPI_Send(nullptr, 0, MPI_BYTE, peer, 1000 + tag, MPI_COMM_WORLD);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        });
}

void sendrecv(harness &t) {
    uint64_t number = 0;
    for (const sample &s : samples()) {
        ++number;
        typed_buffer out(t.device(), s.type, s.count, key_of(t.rank(), number));
        typed_buffer in(t.device(), s.type, s.count, 7);
        MPI_Sendrecv(out.address(), s.count, s.type.handle(), t.peer(), 1, in.address(), s.count,
                     s.type.handle(), t.peer(), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        in.expect(packed_content(in.map(), key_of(t.peer(), number)));
        t.expect(in.right() && out.right(), s.type.text());
    }
}

void sendrecv_replace(harness &t) {
    uint64_t number = 0;
    for (const sample &s : samples()) {
        ++number;
        typed_buffer both(t.device(), s.type, s.count, key_of(t.rank(), number));
        MPI_Sendrecv_replace(both.address(), s.count, s.type.handle(), t.peer(), 1, t.peer(), 1,
                             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        both.expect(packed_content(both.map(), key_of(t.peer(), number)));
        t.expect(both.right(), s.type.text());
    }
}

void self_send(harness &t) {
    for (const sample &s : samples()) {
        typed_buffer out(t.device(), s.type, s.count, 3), in(t.device(), s.type, s.count, 7);
        MPI_Sendrecv(out.address(), s.count, s.type.handle(), t.rank(), 1, in.address(), s.count,
                     s.type.handle(), t.rank(), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        in.expect(out.packed());
        t.expect(in.right() && out.right(), "sendrecv of " + s.type.text());

        out.refill(4);
        MPI_Request requests[2];
        MPI_Isend(out.address(), s.count, s.type.handle(), t.rank(), 2, MPI_COMM_WORLD,
                  &requests[0]);
        MPI_Irecv(in.address(), s.count, s.type.handle(), t.rank(), 2, MPI_COMM_WORLD,
                  &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        in.expect(out.packed());
        t.expect(in.right() && out.right(), "isend of " + s.type.text());
    }
}

const registration tests[] = {{"send", send},          {"ssend", ssend},
                              {"bsend", bsend},        {"rsend", rsend},
                              {"sendrecv", sendrecv},  {"sendrecv_replace", sendrecv_replace},
                              {"self_send", self_send}};

}  // namespace
}  // namespace mpi_test
