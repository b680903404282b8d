#include "local_work/round.hpp"

#include <algorithm>

#include "support/random_type.hpp"

namespace mpi_test {
namespace {

// Bytes with gaps, in descending order or ascending; so many together that there are not many more
// than a thousand pieces, where the size allows it.
made_type scattered_bytes(int size, bool descending) {
    int piece = std::max(size / 1000, 1);
    while (size % piece != 0) {
        --piece;
    }
    made_type made = hvector(size / piece, piece, (descending ? -3 : 2) * piece, basic("BYTE"));
    made.commit();
    return made;
}

// So many copies that they have `bytes` bytes, or 10,000 pieces: random types are hardly ever long.
made_type lengthened(const made_type &one, int64_t bytes) {
    const type_map &map = one.map();
    const int64_t size = std::max<int64_t>(map.size(), 1);
    const int64_t runs = std::max<int64_t>(static_cast<int64_t>(map.runs().size()), 1);
    const int copies = static_cast<int>(std::min(bytes / size, 10000 / runs));
    const int64_t apart = std::max(std::abs(map.extent()), map.true_ub() - map.true_lb()) + 8;
    made_type made = hvector(std::max(copies, 1), 1, apart, one);
    made.commit();
    return made;
}

made_type receivable_type(random_stream &random, int64_t bytes) {
    random_type_limits limits;
    limits.bytes = 4 << 10;
    limits.span = 1 << 17;
    limits.runs = 300;
    made_type made = random_type(random, limits);
    for (int tries = 0; tries < 20; ++tries) {
        type_map several = repeated(made.map(), 40);
        // UCX does not know simulated GPU memory, and is given contiguous bytes themselves
        const bool is_plain = made.map().size() == 1 || made.map().is_contiguous();
        if ((!is_plain || made.map().size() == 0) && !several.overlaps() &&
            !several.has_padding() && made.agrees()) {
            made_type longer = lengthened(made, bytes);
            if (bytes > limits.bytes && longer.agrees() && !repeated(longer.map(), 4).overlaps()) {
                return longer;
            }
            return made;
        }
        made = random_type(random, limits);
    }
    return scattered_bytes(24, false);
}

}  // namespace

std::mutex errors_return::mutex_;

errors_return::errors_return() {
    for (size_t i = 0; i < 2; ++i) {
        MPI_Comm_get_errhandler(all_[i], &before_[i]);
        MPI_Comm_set_errhandler(all_[i], MPI_ERRORS_RETURN);
    }
}

errors_return::~errors_return() {
    for (size_t i = 0; i < 2; ++i) {
        MPI_Comm_set_errhandler(all_[i], before_[i]);
        MPI_Errhandler_free(&before_[i]);
    }
}

round::round(harness &tests, uint64_t seed, int number, int64_t bytes)
    : t(tests),
      all{seed, static_cast<uint64_t>(number)},
      mine{seed, static_cast<uint64_t>(number), static_cast<uint64_t>(tests.rank()) + 1000},
      form_(static_cast<int>(all.between(0, 3))),
      type_(receivable_type(all, bytes)),
      other_(scattered_bytes(static_cast<int>(type_.map().size()), all.one_in(2))) {}

void round::expect(bool right, const char *what) {
    t.expect(right, text + (waits() ? "" : ", nonblocking") + (large() ? ", large counts" : "") +
                        ": " + what + " of " + type_.text());
}

void round::finish(MPI_Request *request, MPI_Status *status) {
    int flag = 0, index = 0;
    switch (mine.between(0, 4)) {
        case 0:
            MPI_Wait(request, status);
            break;
        case 1:
            MPI_Waitall(1, request, status == MPI_STATUS_IGNORE ? MPI_STATUSES_IGNORE : status);
            break;
        case 2:
            MPI_Waitany(1, request, &index, status);
            break;
        case 3:
            while (flag == 0) {
                MPI_Test(request, &flag, status);
            }
            break;
        default:
            while (flag == 0) {
                MPI_Testall(1, request, &flag,
                            status == MPI_STATUS_IGNORE ? MPI_STATUSES_IGNORE : status);
            }
            break;
    }
    expect(*request == MPI_REQUEST_NULL, "request is null at the end");
}

}  // namespace mpi_test
