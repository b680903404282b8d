// Strided puts and gets of the C API beside the message with the same layout on both sides: rank 0
// puts rows into the other rank's GPU memory and waits until they are there. Every byte and gap is
// checked.
//
//   mpirun -np 2 strided_put [--memory cuda|sim|host] [--repeats N] [--largest BYTES]
//
// Columns, us, medians: "put", "get": cuda_nc_put_nbx and ucp_ep_flush_nbx, cuda_nc_get_nbx;
// "message": half a round trip of MPI; "blocks": a ucp_put_nbx for each row, then a flush (up to
// 4,096 rows); "contiguous": one ucp_put_nbx of as many bytes, and a flush.
#include <cuda_nc/cuda_nc.h>
#include <mpi.h>
#include <ucp/api/ucp.h>

#include <CLI/CLI.hpp>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "bench/peer_window.hpp"
#include "bench/test_memory.hpp"
#include "tools/perftest/support/statistics.hpp"

namespace {

struct options {
    std::string memory = "cuda";
    int repeats = 200;
    size_t largest = size_t(16) << 20;
} chosen;

constexpr size_t most_puts = 4096;
int rank_;

// Rows of `block` bytes with gaps of as many.
struct rows {
    size_t bytes, block, count;
    cuda_nc_layout_t layout = nullptr;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    std::unique_ptr<test_memory> source, target;

    rows(size_t bytes_, size_t block_) : bytes(bytes_), block(block_), count(bytes_ / block_) {
        const auto number = static_cast<int64_t>(count), length = static_cast<int64_t>(block);
        peer_window::check(cuda_nc_layout_create_vector(number, length, 2 * length, &layout),
                           "rows");
        MPI_Type_vector(static_cast<int>(count), static_cast<int>(block),
                        static_cast<int>(2 * block), MPI_BYTE, &type);
        MPI_Type_commit(&type);
        source = test_memory::make(chosen.memory, 2 * bytes, rank_);
        target = test_memory::make(chosen.memory, 2 * bytes, rank_);
        if (source == nullptr || target == nullptr) {
            std::fprintf(stderr, "no %s memory\n", chosen.memory.c_str());
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        fill();
    }
    ~rows() {
        cuda_nc_layout_destroy(layout);
        MPI_Type_free(&type);
    }
    rows(const rows &) = delete;
    rows &operator=(const rows &) = delete;

    void fill() {
        source->write(image(2 * bytes, rank_));
        target->write(image(2 * bytes, target_of(rank_)));
    }
    // Of memory that the other rank's rows have come to.
    long wrong(bool contiguous) const {
        const std::vector<unsigned char> seen = target->read();
        long number = 0;
        for (size_t i = 0; i < seen.size(); ++i) {
            const bool covered = contiguous ? i < bytes : i / block % 2 == 0;
            number += seen[i] != pattern(i, covered ? 1 - rank_ : target_of(rank_)) ? 1 : 0;
        }
        return number;
    }
};

// Rank 0 does it, alone, `repeats` times; rank 1 only calls progress. Microseconds.
template <typename Operation>
double measure(peer_window &where, int repeats, Operation &&operation) {
    constexpr int warm_up = 10;
    std::vector<double> times;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; rank_ == 0 && i < repeats + warm_up; ++i) {
        const double begin = MPI_Wtime();
        operation();
        if (i >= warm_up) {
            times.push_back(MPI_Wtime() - begin);
        }
    }
    where.meet();
    return rank_ == 0 ? cuda_nc::tools::median_of(times) * 1e6 : 0;
}

double measure_messages(const rows &what, int repeats) {
    constexpr int warm_up = 10;
    std::vector<double> times;
    for (int i = 0; i < repeats + warm_up; ++i) {
        const double begin = MPI_Wtime();
        for (int sender = 0; sender < 2; ++sender) {
            if (rank_ == sender) {
                MPI_Send(what.source->address(), 1, what.type, 1 - rank_, 2, MPI_COMM_WORLD);
            } else {
                MPI_Recv(what.target->address(), 1, what.type, 1 - rank_, 2, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
            }
        }
        if (i >= warm_up) {
            times.push_back((MPI_Wtime() - begin) / 2);
        }
    }
    return cuda_nc::tools::median_of(times) * 1e6;
}

long run(size_t bytes, size_t block) {
    rows mine(bytes, block);
    char *const source = static_cast<char *>(mine.source->address());
    peer_window other(rank_, source, mine.target->address(), 2 * bytes, UCP_FEATURE_RMA);
    const int repeats = bytes >= (size_t(4) << 20) ? chosen.repeats / 4 + 3 : chosen.repeats;
    long wrong = 0;
    // The rank that was written to looks.
    const auto look = [&](int rank, bool contiguous) {
        MPI_Barrier(MPI_COMM_WORLD);
        wrong += rank_ == rank ? mine.wrong(contiguous) : 0;
        mine.fill();
        MPI_Barrier(MPI_COMM_WORLD);
    };
    const double put = measure(other, repeats, [&] {
        other.finish(cuda_nc_put_nbx(other.ep, source, mine.layout, other.address, other.key,
                                     mine.layout, &other.param));
        other.flush();
    });
    look(1, false);
    // From the other rank's target into our source: what came there before is read back.
    const double get = measure(other, repeats, [&] {
        other.finish(cuda_nc_get_nbx(other.ep, source, mine.layout, other.address, other.key,
                                     mine.layout, &other.param));
    });
    if (rank_ == 0) {
        const std::vector<unsigned char> seen = mine.source->read();
        for (size_t i = 0; i < seen.size(); ++i) {
            wrong += seen[i] != pattern(i, i / block % 2 == 0 ? target_of(1) : 0) ? 1 : 0;
        }
    }
    mine.fill();
    const double message = measure_messages(mine, repeats);
    look(0, false);
    double blocks = 0;
    if (mine.count <= most_puts) {
        blocks = measure(other, repeats / 10 + 3, [&] {
            std::vector<ucs_status_ptr_t> requests;
            for (size_t i = 0; i < mine.count; ++i) {
                const size_t at = 2 * block * i;
                const ucs_status_ptr_t one = ucp_put_nbx(
                    other.ep, source + at, block, other.address + at, other.key, &other.param);
                if (UCS_PTR_IS_PTR(one)) {
                    requests.push_back(one);
                }
            }
            for (ucs_status_ptr_t one : requests) {
                other.finish(one);
            }
            other.flush();
        });
        look(1, false);
    }
    const double contiguous = measure(other, repeats, [&] {
        other.finish(ucp_put_nbx(other.ep, source, bytes, other.address, other.key, &other.param));
        other.flush();
    });
    look(1, true);
    long all = 0;
    MPI_Allreduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank_ == 0) {
        std::printf("%9zu %6zu %9.1f %9.1f %9.1f %11.1f %11.1f %12.2f %15.2f %6ld\n", bytes, block,
                    put, get, message, blocks, contiguous, put / message, put / contiguous, all);
        std::fflush(stdout);
    }
    return all;
}

}  // namespace

int main(int argc, char **argv) {
    CLI::App app("Strided puts beside messages: mpirun -np 2 strided_put", "strided_put");
    app.add_option("--memory", chosen.memory, "Where the buffers lie: cuda, sim or host")
        ->check(CLI::IsMember({"host", "cuda", "sim"}))
        ->capture_default_str();
    app.add_option("--repeats", chosen.repeats, "Operations below 4 MiB")
        ->check(CLI::Range(1, 1000000))
        ->capture_default_str();
    app.add_option("--largest", chosen.largest, "Bytes of the largest one")->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    peer_window::explain = cuda_nc_last_error;
    MPI_Init(nullptr, nullptr);
    int ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != 2) {
        std::fprintf(stderr, "strided_put wants two ranks: mpirun -np 2\n");
        MPI_Finalize();
        return 2;
    }
    if (rank_ == 0) {
        std::printf(
            "# us  bytes  block       put       get   message      blocks  contiguous  "
            "put/message  put/contiguous  wrong\n");
    }
    long wrong = 0;
    for (size_t bytes : {size_t(4) << 10, size_t(64) << 10, size_t(1) << 20, size_t(16) << 20}) {
        for (size_t block : {size_t(8), size_t(64), size_t(4) << 10}) {
            if (bytes <= chosen.largest && block < bytes) {
                wrong += run(bytes, block);
            }
        }
    }
    MPI_Finalize();
    return wrong != 0 ? 1 : 0;
}
