// Random nested datatypes of every MPI constructor travel between two ranks in batches; every byte
// of every buffer, the gaps included, is compared with type maps that this test computes itself.
//
// random_types [--types N] [--seed S] [--memory KINDS] [--batch B] [--bytes LARGEST] [--local]
//              [--verbose]
//
// KINDS: host, sim, cuda, or a list that the ranks take turns over. Without a seed the clock gives
// one, which is printed. --local: MPI_Pack, buffered sends and local copies instead of messages.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>

#include "random_types/batch.hpp"
#include "support/made_type.hpp"

using namespace mpi_test;

namespace {

options parse(int argc, char **argv) {
    options o;
    for (int i = 1; i < argc; ++i) {
        std::string name = argv[i];
        std::string value = i + 1 < argc ? argv[i + 1] : "";
        if (name == "--types") {
            o.types = std::stoi(value);
        } else if (name == "--seed") {
            o.seed = std::stoull(value);
        } else if (name == "--memory") {
            o.memory = value;
        } else if (name == "--batch") {
            o.batch = std::stoi(value);
        } else if (name == "--bytes") {
            o.largest = std::stoll(value);
        } else if (name == "--local") {
            o.local = true;
            continue;
        } else if (name == "--verbose") {
            o.verbose = true;
            continue;
        } else {
            std::fprintf(stderr, "unknown option %s\n", name.c_str());
            std::exit(2);
        }
        ++i;
    }
    return o;
}

}  // namespace

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    options o = parse(argc, argv);
    if (o.seed == 0) {
        o.seed = static_cast<uint64_t>(std::time(nullptr));
    }
    MPI_Bcast(&o.seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        std::printf("seed %llu\n", static_cast<unsigned long long>(o.seed));
        std::printf("RUN random_types\n");
        std::fflush(stdout);
    }
    std::unique_ptr<memory> device = open_memory(o.memory, rank);
    int wrong = 0;
    int done = 0;
    for (; done < o.types && wrong < 20; done += o.batch) {
        int here = run_batch(rank, *device, o, done);
        MPI_Allreduce(MPI_IN_PLACE, &here, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        wrong += here;
    }
    if (rank == 0) {
        std::printf("types %d\n%s random_types%s\n", done, wrong == 0 ? "PASS" : "FAIL",
                    wrong == 0 ? "" : (": " + std::to_string(wrong) + " wrong").c_str());
        std::fflush(stdout);
    }
    MPI_Finalize();
    return wrong == 0 ? 0 : 1;
}
