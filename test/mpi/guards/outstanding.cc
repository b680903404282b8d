#include <vector>

#include "guards/guards.hpp"

namespace mpi_test {
namespace {

constexpr size_t block = 8;

char byte_at(size_t at, int round) {
    return static_cast<char>(at * 7 + at / 251 + static_cast<size_t>(round));
}

}  // namespace

int run_outstanding(memory &where, const guard_options &options) {
    constexpr int rounds = 2;  // what is allocated first is not counted in the second
    const size_t each = static_cast<size_t>(options.blocks) * 2 * block;
    const size_t size = each * static_cast<size_t>(options.count);
    char *buffer = static_cast<char *>(where.allocate(size));
    std::vector<char> bytes(size), seen(size);
    MPI_Datatype type;
    MPI_Type_vector(options.blocks, block, 2 * block, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    int wrong = 0;
    for (int round = 0; round < rounds; ++round) {
        for (size_t i = 0; i < size; ++i) {
            bytes[i] = options.rank == 0 ? byte_at(i, round) : '.';
        }
        where.copy(buffer, bytes.data(), size);
        std::vector<MPI_Request> requests(static_cast<size_t>(options.count));
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        for (int i = 0; i < options.count; ++i) {
            char *at = buffer + each * static_cast<size_t>(i);
            MPI_Request *request = &requests[static_cast<size_t>(i)];
            if (options.rank == 0) {
                MPI_Isend(at, 1, type, 1, i, MPI_COMM_WORLD, request);
            } else {
                MPI_Irecv(at, 1, type, options.any ? MPI_ANY_SOURCE : 0, i, MPI_COMM_WORLD,
                          request);
            }
        }
        MPI_Waitall(options.count, requests.data(), MPI_STATUSES_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
        if (round == rounds - 1) {
            tell(options, "us-per-message", (MPI_Wtime() - begin) / options.count * 1e6);
        }
        where.copy(seen.data(), buffer, size);
        for (size_t i = 0; i < size && options.rank == 1; ++i) {
            wrong += seen[i] != (i % (2 * block) < block ? byte_at(i, round) : '.');
        }
    }
    if (wrong != 0) {
        std::printf("WRONG %d bytes\n", wrong);
    }
    MPI_Type_free(&type);
    where.release(buffer);
    return wrong;
}

}  // namespace mpi_test
