#include <optional>
#include <vector>

#include "guards/guards.hpp"
#include "support/random.hpp"

namespace mpi_test {
namespace {

constexpr int largest_gap = 8, block = 2;

std::vector<int> irregular(random_stream &random, int blocks) {
    std::vector<int> displacements;
    int at = 0;
    for (int i = 0; i < blocks; ++i) {
        at += static_cast<int>(random.between(1, largest_gap));
        displacements.push_back(at);
        at += block;
    }
    return displacements;
}

}  // namespace

int run_types(memory &where, const guard_options &options) {
    random_stream random{options.seed};
    const size_t size = static_cast<size_t>(options.blocks) * (largest_gap + block) + block;
    char *buffer = static_cast<char *>(where.allocate(size));
    std::vector<char> sent(size), empty(size), seen(size);
    random.fill(sent.data(), size);
    where.copy(buffer, options.rank == 0 ? sent.data() : empty.data(), size);
    int wrong = 0;
    std::optional<growth> grown;  // since the first messages, and a full cache of work lists
    const double begin = MPI_Wtime();
    for (int i = 0; i < options.count; ++i) {
        if (i == options.count / 2) {
            grown.emplace();
        }
        const std::vector<int> displacements = irregular(random, options.blocks);
        MPI_Datatype type;
        MPI_Type_create_indexed_block(options.blocks, block, displacements.data(), MPI_BYTE, &type);
        MPI_Type_commit(&type);
        if (options.rank == 0) {
            MPI_Send(buffer, 1, type, 1, 1, MPI_COMM_WORLD);
        } else {
            MPI_Recv(buffer, 1, type, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        MPI_Type_free(&type);
        if (options.rank == 1 && i % 100 == 0) {
            where.copy(seen.data(), buffer, size);
            for (int at : displacements) {
                for (int k = at; k < at + block; ++k) {
                    wrong += seen[static_cast<size_t>(k)] != sent[static_cast<size_t>(k)];
                }
            }
        }
    }
    tell(options, "us-per-type", (MPI_Wtime() - begin) / options.count * 1e6);
    tell(options, "bytes-grown", grown->bytes());
    if (wrong != 0) {
        std::printf("WRONG %d bytes\n", wrong);
    }
    where.release(buffer);
    return wrong;
}

}  // namespace mpi_test
