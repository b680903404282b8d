// What a job without derived datatypes pays: the latency of small contiguous messages, between two
// ranks and from a rank to itself. Run it stock and with the plugin or the shim, in turns:
// idle_cost.sh does.
//
//   mpirun -np 2 idle_cost [--label TEXT] [--bytes N] [--rounds N]
//
// Prints one JSON line: half round trip in nanoseconds (best of the rounds, and median), and the
// time of a send to oneself and its receive. Uses MPI alone.
#include <mpi.h>

#include <CLI/CLI.hpp>

#include <cstdio>
#include <string>
#include <vector>

#include "tools/perftest/support/statistics.hpp"

namespace {

constexpr int trips = 1000;  // of a round

double ping_pong(std::vector<char> &buffer, int rank) {
    const int size = static_cast<int>(buffer.size()), peer = 1 - rank;
    double start = MPI_Wtime();
    for (int i = 0; i < trips; ++i) {
        if (rank == 0) {
            MPI_Send(buffer.data(), size, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
        }
        MPI_Recv(buffer.data(), size, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1) {
            MPI_Send(buffer.data(), size, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
        }
    }
    return (MPI_Wtime() - start) / trips / 2 * 1e9;
}

double to_self(std::vector<char> &buffer, std::vector<char> &target) {
    const int size = static_cast<int>(buffer.size());
    double start = MPI_Wtime();
    for (int i = 0; i < trips; ++i) {
        MPI_Request request;
        MPI_Irecv(target.data(), size, MPI_BYTE, 0, 1, MPI_COMM_SELF, &request);
        MPI_Send(buffer.data(), size, MPI_BYTE, 0, 1, MPI_COMM_SELF);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    return (MPI_Wtime() - start) / trips * 1e9;
}

}  // namespace

int main(int argc, char **argv) {
    std::string label = "mpi";
    size_t bytes = 8;
    int rounds = 200;
    CLI::App app("Latency of small contiguous messages: mpirun -np 2 idle_cost", "idle_cost");
    app.add_option("--label", label, "Text for the result line")->capture_default_str();
    app.add_option("--bytes", bytes, "Bytes of a message")->capture_default_str();
    app.add_option("--rounds", rounds, "Rounds of 1000 round trips")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    MPI_Init(&argc, &argv);
    int rank = 0, ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    std::vector<char> buffer(bytes), target(bytes);
    std::vector<double> between, self;
    for (int i = 0; i < rounds; ++i) {
        between.push_back(ranks == 2 ? ping_pong(buffer, rank) : 0);
        self.push_back(to_self(buffer, target));
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 0) {
        const cuda_nc::tools::summary pair = cuda_nc::tools::summarise(between),
                                      own = cuda_nc::tools::summarise(self);
        std::printf(
            "{\"label\": \"%s\", \"bytes\": %zu, \"half_round_trip_ns\": %.1f, "
            "\"half_round_trip_median_ns\": %.1f, \"self_ns\": %.1f, \"self_median_ns\": %.1f}\n",
            label.c_str(), bytes, pair.least, pair.median, own.least, own.median);
    }
    MPI_Finalize();
    return 0;
}
