// What a job without derived datatypes pays: the latency of small contiguous messages, between two
// ranks and from a rank to itself. Run it stock and with the plugin or the shim, in turns:
// idle_cost.sh does.
//
//   mpirun -np 2 idle_cost [--label TEXT] [--bytes N] [--rounds N]
//
// Prints one JSON line: half round trip in nanoseconds (best of the rounds, and median), and the
// time of a send to oneself and its receive. Uses MPI alone.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

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

double median(std::vector<double> &times) {
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

}  // namespace

int main(int argc, char **argv) {
    const char *label = "mpi";
    size_t bytes = 8;
    int rounds = 200;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (std::strcmp(argv[i], "--label") == 0) {
            label = argv[i + 1];
        } else if (std::strcmp(argv[i], "--bytes") == 0) {
            bytes = std::strtoul(argv[i + 1], nullptr, 0);
        } else if (std::strcmp(argv[i], "--rounds") == 0) {
            rounds = std::max(1, std::atoi(argv[i + 1]));
        }
    }
    MPI_Init(&argc, &argv);
    int rank = 0, ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    std::vector<char> buffer(bytes), target(bytes);
    std::vector<double> between(1), self(1);
    for (int i = 0; i < rounds; ++i) {
        if (ranks == 2) {
            between.resize(static_cast<size_t>(i) + 1);
            between.back() = ping_pong(buffer, rank);
        }
        self.resize(static_cast<size_t>(i) + 1);
        self.back() = to_self(buffer, target);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 0) {
        const double usual_between = median(between), usual_self = median(self);
        std::printf(
            "{\"label\": \"%s\", \"bytes\": %zu, \"half_round_trip_ns\": %.1f, "
            "\"half_round_trip_median_ns\": %.1f, \"self_ns\": %.1f, \"self_median_ns\": %.1f}\n",
            label, bytes, between[0], usual_between, self[0], usual_self);
    }
    MPI_Finalize();
    return 0;
}
