// MPI calls that an MPI library makes itself, without a message or around several: random types in
// random memory, packed, sent to oneself, gathered, reduced ...; every byte, the gaps included, is
// compared with type maps that this test computes itself.
//
// local_work [--memory KINDS] [--rounds N] [--seed S] [--only collective|reduction|message|pack]
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "local_work/round.hpp"

using namespace mpi_test;

namespace mpi_test {
// operations/main.cc has the subtests; this program has none.
std::vector<subtest> &all_subtests() {
    static std::vector<subtest> none;
    return none;
}
}  // namespace mpi_test

int main(int argc, char **argv) {
    std::string memory = "host", only;
    uint64_t seed = 1;
    int rounds = 400;
    for (int i = 1; i + 1 < argc; i += 2) {
        std::string name = argv[i], value = argv[i + 1];
        if (name == "--memory") {
            memory = value;
        } else if (name == "--rounds") {
            rounds = std::stoi(value);
        } else if (name == "--seed") {
            seed = std::stoull(value);
        } else if (name == "--only") {
            only = value;
        } else {
            std::fprintf(stderr, "local_work: unknown option %s\n", name.c_str());
            return 2;
        }
    }
    struct {
        const char *name;
        void (*run)(mpi_test::round &);
    } const kinds[] = {{"collective", random_collective},
                       {"reduction", random_reduction},
                       {"message", random_message},
                       {"pack", random_pack}};
    MPI_Init(&argc, &argv);
    int rank = 0, wrong = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    {
        auto device = open_memory(memory, rank);
        for (int i = 0; i < rounds; ++i) {
            harness t(*device);
            mpi_test::round r(t, seed, i);
            const auto &kind = kinds[i % 4];
            if (only.empty() || only == kind.name) {
                kind.run(r);
            }
            if (t.failures() != 0) {
                ++wrong;
                std::printf("WRONG: rank %d, seed %llu, round %d: %s\n", rank,
                            static_cast<unsigned long long>(seed), i, t.first_failure().c_str());
                std::fflush(stdout);
            }
        }
    }
    int all = 0;
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        std::printf("%s local_work: %d of %d rounds wrong, seed %llu\n", all == 0 ? "PASS" : "FAIL",
                    all, rounds, static_cast<unsigned long long>(seed));
    }
    MPI_Finalize();
    return all == 0 ? 0 : 1;
}
