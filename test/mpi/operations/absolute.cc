// MPI_BOTTOM: types of absolute addresses, of one buffer or of several at once.
#include <cstdint>
#include <vector>

#include "operations/exchange.hpp"

namespace mpi_test {
namespace {

MPI_Aint address_of(const typed_buffer &buffer) {
    MPI_Aint address = 0;
    MPI_Get_address(buffer.address(), &address);
    return address;
}

void bottom(harness &t) {
    auto absolute = [](const void *buffer, int count, MPI_Datatype type) {
        MPI_Aint address = 0;
        MPI_Get_address(buffer, &address);
        MPI_Type_create_hindexed(1, &count, &address, type, &type);
        MPI_Type_commit(&type);
        return type;
    };
    exchange_samples(
        t,
        [&](const void *buffer, int count, MPI_Datatype type, int peer, int tag) {
            MPI_Datatype made = absolute(buffer, count, type);
            plain_send(MPI_BOTTOM, 1, made, peer, tag);
            MPI_Type_free(&made);
        },
        [&](void *buffer, int count, MPI_Datatype type, int peer, int tag) {
            MPI_Datatype made = absolute(buffer, count, type);
            plain_receive(MPI_BOTTOM, 1, made, peer, tag);
            MPI_Type_free(&made);
        });
}

// One message of three buffers of different types.
void bottom_of_several(harness &t) {
    const std::vector<sample> &s = few_samples();
    for (int round = 0; round < 2; ++round) {
        typed_buffer a(t.device(), s[0].type, s[0].count, key_of(t.rank(), 1));
        typed_buffer b(t.device(), s[2].type, s[2].count, key_of(t.rank(), 2));
        typed_buffer c(t.device(), s[3].type, s[3].count, key_of(t.rank(), 3));
        int counts[] = {s[3].count, s[0].count, s[2].count};
        MPI_Aint addresses[] = {address_of(c), address_of(a), address_of(b)};
        MPI_Datatype types[] = {s[3].type.handle(), s[0].type.handle(), s[2].type.handle()};
        MPI_Datatype all;
        MPI_Type_create_struct(3, counts, addresses, types, &all);
        MPI_Type_commit(&all);
        if (t.rank() == round) {
            plain_send(MPI_BOTTOM, 1, all, t.peer(), 1);
        } else {
            plain_receive(MPI_BOTTOM, 1, all, t.peer(), 1);
            a.expect(packed_content(a.map(), key_of(t.peer(), 1)));
            b.expect(packed_content(b.map(), key_of(t.peer(), 2)));
            c.expect(packed_content(c.map(), key_of(t.peer(), 3)));
        }
        MPI_Type_free(&all);
        t.expect(a.right() && b.right() && c.right(), "several buffers");
    }
}

const registration tests[] = {{"bottom", bottom}, {"bottom_of_several", bottom_of_several}};

}  // namespace
}  // namespace mpi_test
