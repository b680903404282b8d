#include <algorithm>
#include <vector>

#include "guards/guards.hpp"

namespace mpi_test {
namespace {

constexpr size_t block = 8;

char byte_at(size_t at, int round) {
    return static_cast<char>(at * 7 + at / 251 + static_cast<size_t>(round));
}

// Sends or receives all messages, at most `together` at a time. Returns microseconds a message.
double exchange(const guard_options &options, char *buffer, size_t each, MPI_Datatype type,
                int together) {
    std::vector<MPI_Request> requests(static_cast<size_t>(together));
    double seconds = 0;
    for (int first = 0; first < options.count; first += together) {
        const int number = std::min(together, options.count - first);
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        for (int i = 0; i < number; ++i) {
            char *at = buffer + each * static_cast<size_t>(first + i);
            MPI_Request *request = &requests[static_cast<size_t>(i)];
            if (options.rank == 0) {
                MPI_Isend(at, 1, type, 1, i, MPI_COMM_WORLD, request);
            } else {
                MPI_Irecv(at, 1, type, options.any ? MPI_ANY_SOURCE : 0, i, MPI_COMM_WORLD,
                          request);
            }
        }
        MPI_Waitall(number, requests.data(), MPI_STATUSES_IGNORE);
        seconds += MPI_Wtime() - begin;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return seconds / options.count * 1e6;
}

}  // namespace

// By turns, so that what else the machine does meets both alike; the least of the rounds counts.
int run_outstanding(memory &where, const guard_options &options) {
    constexpr int rounds = 3, few = 64;
    const size_t each = static_cast<size_t>(options.blocks) * 2 * block;
    const size_t size = each * static_cast<size_t>(options.count);
    char *buffer = static_cast<char *>(where.allocate(size));
    std::vector<char> bytes(size), seen(size);
    MPI_Datatype type;
    MPI_Type_vector(options.blocks, block, 2 * block, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    int wrong = 0;
    double least[2] = {1e9, 1e9};
    for (int round = 0; round < 2 * rounds; ++round) {
        for (size_t i = 0; i < size; ++i) {
            bytes[i] = options.rank == 0 ? byte_at(i, round) : '.';
        }
        where.copy(buffer, bytes.data(), size);
        const bool all = round % 2 != 0;
        const double took = exchange(options, buffer, each, type, all ? options.count : few);
        least[all] = std::min(least[all], took);
        where.copy(seen.data(), buffer, size);
        for (size_t i = 0; i < size && options.rank == 1; ++i) {
            wrong += seen[i] != (i % (2 * block) < block ? byte_at(i, round) : '.');
        }
    }
    tell(options, "us-among-few", least[0]);
    tell(options, "us-among-all", least[1]);
    if (wrong != 0) {
        std::printf("WRONG %d bytes\n", wrong);
    }
    MPI_Type_free(&type);
    where.release(buffer);
    return wrong;
}

}  // namespace mpi_test
