// Receives that are shorter or longer than what arrives, or that never match.
#include <algorithm>
#include <vector>

#include "operations/exchange.hpp"

namespace mpi_test {
namespace {

// Too long a message: MPI_ERR_TRUNCATE, and not a byte outside the receive's type map.
void truncation(harness &t) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (const sample &s : samples()) {
        if (s.count == 0) {
            continue;
        }
        for (int tag = 0; tag < 2; ++tag) {  // expected, and unexpected
            typed_buffer out(t.device(), s.type, 2 * s.count, key_of(t.rank(), 1));
            typed_buffer in(t.device(), s.type, s.count, 7);
            MPI_Request request = MPI_REQUEST_NULL;
            MPI_Status status;
            status.MPI_ERROR = MPI_SUCCESS;
            int error = MPI_SUCCESS;
            if (t.rank() == 1 && tag == 0) {
                MPI_Irecv(in.address(), s.count, s.type.handle(), 0, tag, MPI_COMM_WORLD, &request);
            }
            MPI_Barrier(MPI_COMM_WORLD);
            if (t.rank() == 0) {
                plain_send(out.address(), 2 * s.count, s.type.handle(), 1, tag);
            } else if (tag == 0) {
                error = MPI_Wait(&request, &status);
            } else {
                error = MPI_Recv(in.address(), s.count, s.type.handle(), 0, tag, MPI_COMM_WORLD,
                                 &status);
            }
            if (t.rank() == 1) {
                int what = MPI_SUCCESS;
                MPI_Error_class(error, &what);
                t.expect(what == MPI_ERR_TRUNCATE, "error of " + s.type.text());
                in.expect_anything();
            }
            t.expect(in.right() && out.right(), "bytes around " + s.type.text());
        }
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

// Too short a message: the rest of the buffer stays, and the status tells how much has come.
void longer_receive(harness &t) {
    for (const sample &s : samples()) {
        typed_buffer out(t.device(), s.type, s.count, key_of(t.rank(), 1));
        typed_buffer in(t.device(), s.type, 2 * s.count + 1, 7);
        MPI_Request request;
        MPI_Isend(out.address(), s.count, s.type.handle(), t.peer(), 1, MPI_COMM_WORLD, &request);
        MPI_Status status;
        MPI_Recv(in.address(), 2 * s.count + 1, s.type.handle(), t.peer(), 1, MPI_COMM_WORLD,
                 &status);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        in.expect(packed_content(out.map(), key_of(t.peer(), 1)));
        t.expect(in.right() && out.right(), s.type.text());
        int count = -1;
        MPI_Get_count(&status, s.type.handle(), &count);
        t.expect(count == s.count, "MPI_Get_count of " + s.type.text());
    }
}

// A message that ends inside an element, even inside one of its blocks.
void partial_element(harness &t) {
    for (int shape : {0, 3, 4, 7}) {  // of one basic type each
        static const int widths[] = {8, 0, 0, 4, 4, 0, 0, 8};
        for (int64_t bytes : {400, 300000}) {
            made_type type = sample_type(shape, bytes);
            typed_buffer in(t.device(), type, 3, 7);
            int width = widths[shape];
            int size = static_cast<int>(type.map().size() + type.map().size() / 3) / width * width;
            std::vector<char> mine(static_cast<size_t>(size), static_cast<char>(t.rank() + 1));
            std::vector<char> theirs(mine.size(), static_cast<char>(t.peer() + 1));
            MPI_Request request;
            MPI_Isend(mine.data(), size, MPI_BYTE, t.peer(), 1, MPI_COMM_WORLD, &request);
            MPI_Status status;
            MPI_Recv(in.address(), 3, type.handle(), t.peer(), 1, MPI_COMM_WORLD, &status);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            in.expect(theirs);
            t.expect(in.right(), type.text());
            int count = 0, elements = 0;
            MPI_Get_count(&status, type.handle(), &count);
            MPI_Get_elements(&status, type.handle(), &elements);
            t.expect(count == MPI_UNDEFINED, "MPI_Get_count of a part of " + type.text());
            t.expect(elements == size / width, "MPI_Get_elements of " + type.text());
        }
    }
}

// A cancelled receive touches nothing, and the next message is right.
void cancelled_receive(harness &t) {
    for (const sample &s : samples()) {
        typed_buffer out(t.device(), s.type, s.count, key_of(t.rank(), 1));
        typed_buffer never(t.device(), s.type, s.count, 8), in(t.device(), s.type, s.count, 7);
        MPI_Request request;
        MPI_Irecv(never.address(), s.count, s.type.handle(), t.peer(), 1, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        MPI_Status status;
        MPI_Wait(&request, &status);
        int cancelled = 0;
        MPI_Test_cancelled(&status, &cancelled);
        t.expect(cancelled != 0, "cancelled");
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Sendrecv(out.address(), s.count, s.type.handle(), t.peer(), 1, in.address(), s.count,
                     s.type.handle(), t.peer(), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        in.expect(packed_content(in.map(), key_of(t.peer(), 1)));
        t.expect(in.right() && out.right(), "after the cancelled one: " + s.type.text());
        t.expect(never.right(), "the cancelled one: " + s.type.text());
    }
}

// Types without bytes, and counts of zero, in every combination that is a message.
void empty(harness &t) {
    made_type none = contiguous(0, basic("DOUBLE"));
    none.commit();
    const sample &some = few_samples()[0];
    typed_buffer buffer(t.device(), some.type, 1, 3);
    for (int i = 0; i < 4; ++i) {
        MPI_Datatype sent = i % 2 == 0 ? none.handle() : some.type.handle();
        MPI_Datatype received = i / 2 == 0 ? none.handle() : some.type.handle();
        MPI_Status status;
        MPI_Sendrecv(buffer.address(), i % 2 == 0 ? 3 : 0, sent, t.peer(), 1, buffer.address(), 1,
                     received, t.peer(), 1, MPI_COMM_WORLD, &status);
        int bytes = -1;
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        t.expect(bytes == 0 && buffer.right(), "an empty message");
    }
}

const registration tests[] = {{"truncation", truncation},
                              {"longer_receive", longer_receive},
                              {"partial_element", partial_element},
                              {"cancelled_receive", cancelled_receive},
                              {"empty", empty}};

}  // namespace
}  // namespace mpi_test
