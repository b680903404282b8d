#include <algorithm>
#include <vector>

#include "guards/guards.hpp"

namespace mpi_test {
namespace {

char byte_at(size_t at, int message, int rank) {
    return static_cast<char>(at * 7 + at / 251 + static_cast<size_t>(message * 3 + rank));
}

// `packed` bytes in blocks of 8 with gaps as long, or in one block.
struct shape {
    shape(size_t packed, bool contiguous) {
        block = contiguous ? packed : std::min<size_t>(packed, 8);
        const size_t blocks = packed / block;
        MPI_Type_vector(static_cast<int>(blocks), static_cast<int>(block),
                        static_cast<int>(2 * block), MPI_BYTE, &type);
        MPI_Type_commit(&type);
        bytes = blocks * block;
    }
    ~shape() { MPI_Type_free(&type); }
    shape(const shape &) = delete;

    MPI_Datatype type;
    size_t block, bytes;
};

// Bytes of the other rank that are not there, or gaps that are not as before.
int count_wrong(const std::vector<char> &seen, const shape &what, int messages, int other) {
    const size_t each = seen.size() / static_cast<size_t>(messages);
    int wrong = 0;
    for (size_t i = 0; i < seen.size(); ++i) {
        const size_t at = i % each;
        const int message = static_cast<int>(i / each);
        const bool is_data =
            at / (2 * what.block) < what.bytes / what.block && at % (2 * what.block) < what.block;
        wrong += seen[i] != (is_data ? byte_at(at, message, other) : '.');
    }
    return wrong;
}

}  // namespace

int run_early_sends(memory &where, const guard_options &options) {
    const int other = 1 - options.rank;
    int wrong = 0;
    // A single block would be contiguous, too.
    for (size_t packed : {options.contiguous ? 1 : 16, 100, 1000, 1024, 4000, 4096}) {
        const shape what(packed, options.contiguous);
        const size_t each = 2 * packed, size = each * static_cast<size_t>(options.count);
        char *from = static_cast<char *>(where.allocate(size));
        char *to = static_cast<char *>(where.allocate(size));
        std::vector<char> bytes(size), seen(size, '.');
        for (size_t i = 0; i < size; ++i) {
            bytes[i] = byte_at(i % each, static_cast<int>(i / each), options.rank);
        }
        where.copy(from, bytes.data(), size);
        where.copy(to, seen.data(), size);
        for (int i = 0; i < options.count; ++i) {
            char *at = from + each * static_cast<size_t>(i);
            MPI_Send(at, 1, what.type, other, i, MPI_COMM_WORLD);
        }
        std::fill(seen.begin(), seen.end(), '!');
        where.copy(from, seen.data(), size);  // MPI_Send has returned: its buffer is ours again
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < options.count; ++i) {
            char *at = to + each * static_cast<size_t>(i);
            MPI_Recv(at, 1, what.type, other, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        where.copy(seen.data(), to, size);
        wrong += count_wrong(seen, what, options.count, other);
        where.release(from);
        where.release(to);
    }
    if (wrong != 0) {
        std::printf("WRONG %d bytes\n", wrong);
    }
    tell(options, "wrong", wrong);
    return wrong;
}

}  // namespace mpi_test
