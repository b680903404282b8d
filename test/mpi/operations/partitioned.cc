// Partitioned messages of MPI 4, which Open MPI has from 5.0 on.
#include "operations/exchange.hpp"

#if OMPI_MAJOR_VERSION >= 5

namespace mpi_test {
namespace {

constexpr int partitions = 8;

// Every second element, so that the next copy's elements lie between; `n` is odd.
made_type interleaved(int n) {
    made_type type = resized(0, 8 * n, vector(n, 1, 2, basic("DOUBLE")));
    type.commit();
    return type;
}

// Partitions become ready in a scattered order.
void exchange_partitions(harness &t, const made_type &type, int count, int sender) {
    typed_buffer buffer(t.device(), type, partitions * count, 1);
    MPI_Request request;
    if (t.rank() == sender) {
        MPI_Psend_init(buffer.address(), partitions, count, type.handle(), t.peer(), 1,
                       MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    } else {
        MPI_Precv_init(buffer.address(), partitions, count, type.handle(), t.peer(), 1,
                       MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    }
    for (uint64_t round = 0; round < 2; ++round) {
        buffer.refill(key_of(t.rank(), round));
        MPI_Start(&request);
        for (int i = 0; t.rank() == sender && i < partitions; ++i) {
            MPI_Pready(i * 3 % partitions, request);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (t.rank() != sender) {
            buffer.expect(packed_content(buffer.map(), key_of(sender, round)));
        }
        t.expect(buffer.right(), "start " + std::to_string(round) + " of " + type.text());
    }
    MPI_Request_free(&request);
}

// Open MPI 5.0.11 places partitions one size apart where MPI says one extent. So the extent of
// every type here is its size.
void partitioned(harness &t) {
    for (int sender = 0; sender < 2; ++sender) {
        for (int n : {11, 1001, 30001}) {
            exchange_partitions(t, interleaved(n), 1 + n % 3, sender);
        }
        for (int64_t bytes : {100, 9000, 200000}) {
            exchange_partitions(t, sample_type(3, bytes), 2, sender);  // a transpose is dense
        }
    }
}

const registration tests[] = {{"partitioned", partitioned}};

}  // namespace
}  // namespace mpi_test

#endif
