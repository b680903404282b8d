// Two ranks exchange messages from and into many allocations by turns, each of its own, as those of
// the layers of a model are. A receiver that reads its peer's GPU memory keeps it mapped; what a
// message costs where it does not shows beside few allocations. Every byte is checked.
//
//   mpirun -np 2 mpi_turns [--memory cuda|sim|host] [--label TEXT] [--rounds N] [--bytes N]
//                          [--allocations N,...] [--allocated BYTES]
//
// A time is half of a round trip: the median of a round of all allocations, divided by their
// number. The first two rounds are not timed.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "bench/two_ranks.hpp"
#include "tools/perftest/support/statistics.hpp"

namespace {

constexpr int block = 64;  // bytes; the blocks lie twice as far apart

struct options : two_ranks {
    int rounds = 20;
    int bytes = 64 << 10;
    size_t allocated = size_t(4) << 20;  // bytes; CUDA's of less than 2 MiB share pages
    std::vector<int> allocations = {1, 64, 80, 256};
} chosen;

size_t measured_;  // how many times; allocations of before may have lain at the same addresses

unsigned char pattern(size_t at, size_t number, int rank) {
    return static_cast<unsigned char>(
               (at / 8 + 37 * number + 100003 * measured_) * 0x9E3779B97F4A7C15ull >> 56) ^
           static_cast<unsigned char>(rank + 1);
}

struct buffers {
    std::vector<std::unique_ptr<test_memory>> all;

    explicit buffers(int number) {
        for (int i = 0; i < number; ++i) {
            all.push_back(chosen.allocate(chosen.memory, chosen.allocated));
        }
    }
    void fill() {
        for (size_t i = 0; i < all.size(); ++i) {
            std::vector<unsigned char> image(chosen.allocated);
            for (size_t at = 0; at < chosen.allocated; ++at) {
                image[at] = pattern(at, i, chosen.rank);
            }
            all[i]->write(image);
        }
    }
    // Bytes that are neither what the other rank sent nor, between the blocks, what lay there.
    long wrong(size_t span, bool contiguous) const {
        long found = 0;
        for (size_t i = 0; i < all.size(); ++i) {
            const std::vector<unsigned char> seen = all[i]->read();
            for (size_t at = 0; at < chosen.allocated; ++at) {
                const bool sent = at < span && (contiguous || at % (2 * block) < block);
                found += seen[at] != (sent ? pattern(at, i, 1 - chosen.rank) : 0xa5);
            }
        }
        return found;
    }
};

long measure(int number, bool contiguous) {
    MPI_Datatype type;
    const int blocks = chosen.bytes / block;
    MPI_Type_vector(blocks, block, contiguous ? block : 2 * block, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    ++measured_;
    buffers from(number), to(number);
    from.fill();
    for (auto &one : to.all) {
        one->write(std::vector<unsigned char>(chosen.allocated, 0xa5));
    }
    std::vector<double> times;
    for (int round = 0; round < chosen.rounds + 2; ++round) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        for (int i = 0; i < number; ++i) {
            for (int turn = 0; turn < 2; ++turn) {
                const auto at = static_cast<size_t>(i);
                if (turn == chosen.rank) {
                    MPI_Send(from.all[at]->address(), 1, type, 1 - chosen.rank, 1, MPI_COMM_WORLD);
                } else {
                    MPI_Recv(to.all[at]->address(), 1, type, 1 - chosen.rank, 1, MPI_COMM_WORLD,
                             MPI_STATUS_IGNORE);
                }
            }
        }
        if (round >= 2) {
            times.push_back((MPI_Wtime() - start) / 2 / number * 1e6);
        }
    }
    if (chosen.rank == 0) {
        std::printf("%s %-10s %9d B, %4d allocations: %10.1f us\n", chosen.label.c_str(),
                    contiguous ? "contiguous" : "blocks", chosen.bytes, number,
                    cuda_nc::tools::median_of(times));
        std::fflush(stdout);
    }
    const auto span = static_cast<size_t>(contiguous ? 1 : 2) * static_cast<size_t>(chosen.bytes);
    const long wrong = to.wrong(span, contiguous);
    MPI_Type_free(&type);
    MPI_Barrier(MPI_COMM_WORLD);  // the other rank may still read `from`
    return wrong;
}

}  // namespace

int main(int argc, char **argv) {
    CLI::App app("Messages from many allocations by turns: mpirun -np 2 mpi_turns", "mpi_turns");
    chosen.add_options(&app);
    app.add_option("--rounds", chosen.rounds, "Rounds that are timed")
        ->check(CLI::Range(1, 1000000))
        ->capture_default_str();
    app.add_option("--bytes", chosen.bytes, "Bytes of a message, a multiple of 64")
        ->check(CLI::Range(block, 1 << 30))
        ->capture_default_str();
    app.add_option("--allocations", chosen.allocations, "How many, on each side and rank")
        ->delimiter(',')
        ->check(CLI::Range(1, 10000))
        ->capture_default_str();
    app.add_option("--allocated", chosen.allocated, "Bytes of each, at least twice a message's")
        ->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    chosen.bytes = chosen.bytes / block * block;
    chosen.allocated = std::max(chosen.allocated, 2 * static_cast<size_t>(chosen.bytes));
    chosen.start(&argc, &argv);
    long wrong_here = 0;
    for (int number : chosen.allocations) {
        wrong_here += measure(number, false);
        // UCX itself reads what is contiguous, and does not know a simulated GPU's memory.
        wrong_here += chosen.memory == "sim" ? 0 : measure(number, true);
    }
    return chosen.finish(wrong_here);
}
