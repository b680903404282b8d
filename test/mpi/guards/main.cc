// guards cancels|types|outstanding|early-sends [--count N] [--blocks N] [--memory KINDS] [--any]
//        [--contiguous] [--seed N]
//
// KINDS: host, sim, cuda, or a list that the ranks take turns over.
#include <cstdlib>
#include <cstring>
#include <map>

#include "guards/guards.hpp"

using namespace mpi_test;

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    guard_options options;
    MPI_Comm_rank(MPI_COMM_WORLD, &options.rank);
    const std::map<std::string, int (*)(memory &, const guard_options &)> all = {
        {"cancels", run_cancels},
        {"types", run_types},
        {"outstanding", run_outstanding},
        {"early-sends", run_early_sends}};
    const auto chosen = all.find(argc > 1 ? argv[1] : "");
    std::string kinds = "sim";
    bool known = chosen != all.end();
    for (int i = 2; i < argc && known; ++i) {
        const std::string name = argv[i];
        if (name == "--any") {
            options.any = true;
            continue;
        }
        if (name == "--contiguous") {
            options.contiguous = true;
            continue;
        }
        const char *value = ++i < argc ? argv[i] : "";
        if (name == "--count") {
            options.count = std::atoi(value);
        } else if (name == "--blocks") {
            options.blocks = std::atoi(value);
        } else if (name == "--seed") {
            options.seed = std::strtoull(value, nullptr, 10);
        } else if (name == "--memory") {
            kinds = value;
        } else {
            known = false;
        }
    }
    if (!known) {
        std::fprintf(stderr,
                     "guards cancels|types|outstanding|early-sends [--count N] [--blocks N] "
                     "[--memory KINDS] [--any] [--contiguous] [--seed N]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int wrong = chosen->second(*open_memory(kinds, options.rank), options);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return wrong == 0 ? 0 : 1;
}
