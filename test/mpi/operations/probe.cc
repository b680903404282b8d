// Messages that are looked at before they are received.
#include "operations/exchange.hpp"

namespace mpi_test {
namespace {

// Whether a probe's status tells the message's size in bytes and elements.
bool tells_size(MPI_Status &status, int count, MPI_Datatype type) {
    int size = 0, bytes = 0, elements = 0;
    MPI_Type_size(type, &size);
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    MPI_Get_count(&status, type, &elements);
    return bytes == size * count && elements == count;
}

void probe(harness &t) {
    exchange_samples(t, plain_send,
                     [&t](void *buffer, int count, MPI_Datatype type, int peer, int tag) {
                         MPI_Status status;
                         MPI_Probe(peer, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
                         t.expect(tells_size(status, count, type), "size told by MPI_Probe");
                         t.expect(status.MPI_TAG == tag, "tag told by MPI_Probe");
                         plain_receive(buffer, count, type, peer, status.MPI_TAG);
                     });
}

void mprobe(harness &t) {
    exchange_samples(t, plain_send,
                     [&t](void *buffer, int count, MPI_Datatype type, int peer, int tag) {
                         MPI_Message message;
                         MPI_Status status;
                         MPI_Mprobe(peer, tag, MPI_COMM_WORLD, &message, &status);
                         t.expect(tells_size(status, count, type), "size told by MPI_Mprobe");
                         MPI_Mrecv(buffer, count, type, &message, &status);
                         t.expect(tells_size(status, count, type), "size told by MPI_Mrecv");
                     });
}

void improbe(harness &t) {
    exchange_samples(t, plain_send,
                     [&t](void *buffer, int count, MPI_Datatype type, int peer, int tag) {
                         MPI_Message message;
                         MPI_Status status;
                         for (int found = 0; found == 0;) {
                             MPI_Improbe(peer, tag, MPI_COMM_WORLD, &found, &message, &status);
                         }
                         t.expect(tells_size(status, count, type), "size told by MPI_Improbe");
                         MPI_Request request;
                         MPI_Imrecv(buffer, count, type, &message, &request);
                         MPI_Wait(&request, MPI_STATUS_IGNORE);
                     });
}

// A matched message waits while a later one of the same tag overtakes it.
void mprobe_overtaken(harness &t) {
    for (const sample &s : few_samples()) {
        typed_buffer first(t.device(), s.type, s.count, key_of(t.rank(), 1));
        typed_buffer second(t.device(), s.type, s.count, key_of(t.rank(), 2));
        if (t.rank() == 0) {
            MPI_Request requests[2];
            int i = 0;
            for (typed_buffer *buffer : {&first, &second}) {
                MPI_Isend(buffer->address(), s.count, s.type.handle(), 1, 1, MPI_COMM_WORLD,
                          &requests[i++]);
            }
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        } else {
            MPI_Message message;
            MPI_Mprobe(0, 1, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
            plain_receive(second.address(), s.count, s.type.handle(), 0, 1);
            MPI_Mrecv(first.address(), s.count, s.type.handle(), &message, MPI_STATUS_IGNORE);
            first.expect(packed_content(first.map(), key_of(0, 1)));
            second.expect(packed_content(second.map(), key_of(0, 2)));
        }
        t.expect(first.right() && second.right(), s.type.text());
    }
}

const registration tests[] = {{"probe", probe},
                              {"mprobe", mprobe},
                              {"improbe", improbe},
                              {"mprobe_overtaken", mprobe_overtaken}};

}  // namespace
}  // namespace mpi_test
