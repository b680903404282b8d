// Messages to oneself, buffered ones, and those that replace what they send.
#include "local_work/round.hpp"

namespace mpi_test {
namespace {

constexpr int tag = 3;

std::vector<char> bytes_of(int rank, int64_t size) {
    std::vector<char> made(static_cast<size_t>(size));
    random_stream{static_cast<uint64_t>(rank)}.fill(made.data(), made.size());
    return made;
}

// Sends `count` elements, and has room for `more` further ones.
void to_oneself(round &r) {
    const int count = static_cast<int>(r.mine.between(0, 5));
    const int more = static_cast<int>(r.mine.between(0, 2));
    const bool in_self = r.one_in(3);
    const MPI_Comm comm = in_self ? r.self : r.comm;
    const int me = in_self ? 0 : r.rank();
    const made_type &sent = r.either(), &received = r.either();
    auto from = r.buffer(sent, count, 5), to = r.buffer(received, count + more, 6);
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status status;
    bool has_status = true;
    auto start_receive = [&] {
        CALL_NOW(r, Irecv, to->address(), count + more, received.handle(), me, tag, comm,
                 &requests[0]);
    };
    auto start_send = [&] {
        auto call = r.mine.one_in(2) ? MPI_Isend : r.mine.one_in(2) ? MPI_Issend : MPI_Isend;
        call(from->address(), count, sent.handle(), me, tag, comm, &requests[1]);
    };
    switch (r.mine.between(0, 4)) {
        case 0:
            r.text = "Irecv, Isend";
            start_receive();
            start_send();
            r.finish(&requests[1]);
            r.finish(&requests[0], &status);
            break;
        case 1:
            r.text = "Irecv, Send";
            start_receive();
            (r.mine.one_in(2) ? MPI_Send : MPI_Rsend)(from->address(), count, sent.handle(), me,
                                                      tag, comm);
            r.finish(&requests[0], &status);
            break;
        case 2:
            r.text = "Isend, Recv";
            start_send();
            MPI_Recv(to->address(), count + more, received.handle(), me, tag, comm, &status);
            r.finish(&requests[1]);
            break;
        case 3:
            r.text = "Sendrecv";
            MPI_Sendrecv(from->address(), count, sent.handle(), me, tag, to->address(),
                         count + more, received.handle(), me, tag, comm, &status);
            break;
        default:
            r.text = "Isendrecv";
            MPI_Isendrecv(from->address(), count, sent.handle(), me, tag, to->address(),
                          count + more, received.handle(), me, tag, comm, &requests[0]);
            r.finish(&requests[0], &status);
            has_status = false;  // MPICH's own has none
            break;
    }
    int got = 0;
    MPI_Get_count(&status, received.handle(), &got);
    const bool is_right = got == (received.map().size() != 0 ? count : 0) &&
                          status.MPI_SOURCE == me && status.MPI_TAG == tag;
    r.expect(is_right || !has_status, "status");
    to->expect(from->packed());
    r.expect(to->right() && from->right(), "bytes");
}

void buffered(round &r) {
    const int to_rank = (r.rank() + 1) % r.ranks(), source = (r.rank() + r.ranks() - 1) % r.ranks();
    const made_type &sent_type = r.either(), &received_type = r.either();
    auto from = r.buffer(sent_type, 3, 5), to = r.buffer(received_type, 3, 6);
    from->store(bytes_of(r.rank(), from->size()));
    MPI_Request received, sent;
    std::vector<char> room(static_cast<size_t>(from->size()) + MPI_BSEND_OVERHEAD);
    MPI_Irecv(to->address(), 3, received_type.handle(), source, tag, r.comm, &received);
    MPI_Buffer_attach(room.data(), static_cast<int>(room.size()));
    r.text = "Bsend";
    if (r.waits()) {
        MPI_Bsend(from->address(), 3, sent_type.handle(), to_rank, tag, r.comm);
    } else {
        MPI_Ibsend(from->address(), 3, sent_type.handle(), to_rank, tag, r.comm, &sent);
        r.finish(&sent);
    }
    r.finish(&received);
    void *detached;
    int size;
    MPI_Buffer_detach(&detached, &size);
    to->expect(bytes_of(source, to->size()));
    r.expect(to->right() && from->right(), "bytes");
}

void replaced(round &r) {
    const int step = static_cast<int>(r.all.between(0, r.ranks() - 1));  // 0: with oneself
    const int to_rank = (r.rank() + step) % r.ranks();
    const int source = (r.rank() + r.ranks() - step) % r.ranks();
    const made_type &type = r.either();
    // MPICH's own Isendrecv_replace fails
    const bool waits = r.waits() || !r.t.device().is_device();
    typed_buffer in_gpu(r.t.device(), type, 2, 6), *buffer = &in_gpu;
    buffer->store(bytes_of(r.rank(), buffer->size()));
    MPI_Status status;
    MPI_Request request;
    r.text = "Sendrecv_replace";
    if (waits) {
        MPI_Sendrecv_replace(buffer->address(), 2, type.handle(), to_rank, tag, source, tag, r.comm,
                             &status);
    } else {
        MPI_Isendrecv_replace(buffer->address(), 2, type.handle(), to_rank, tag, source, tag,
                              r.comm, &request);
        r.finish(&request, &status);
        status.MPI_SOURCE = source;  // MPICH's own says nothing
    }
    buffer->expect(bytes_of(source, buffer->size()));
    r.expect(status.MPI_SOURCE == source, "status");
    r.expect(buffer->right(), "bytes");
}

// A receive from oneself that is cancelled leaves its buffer as it was.
void cancelled(round &r) {
    auto to = r.buffer(r.type(), 2, 6);
    MPI_Request request;
    MPI_Status status;
    int is_cancelled = 0;
    r.text = "Irecv, Cancel";
    MPI_Irecv(to->address(), 2, r.type().handle(), r.rank(), tag + 2, r.comm, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &is_cancelled);
    r.expect(is_cancelled != 0 && to->right(), "bytes");
}

}  // namespace

void random_replace(round &r) {
    replaced(r);
}

void random_message(round &r) {
    switch (r.all.between(0, 5)) {
        case 0:
            return r.beside_others ? replaced(r) : buffered(r);  // one buffer in a process
        case 1:
            return replaced(r);
        case 2:
            return cancelled(r);
        default:
            return to_oneself(r);
    }
}

}  // namespace mpi_test
