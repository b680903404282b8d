// MPI calls that an MPI library makes itself, without a message or around several: random types in
// random memory, packed, sent to oneself, gathered, reduced ...; every byte, the gaps included, is
// compared with type maps that this test computes itself.
//
// local_work [--memory KINDS] [--rounds N] [--seed S]
//            [--only collective|reduction|message|pack|broadcast|replace]
//            [--threads N] [--bytes N]
//
// --bytes: most of an element; a call moves some elements for each rank.
// Threads work at the same time, each on a communicator of its own.
#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "local_work/round.hpp"

using namespace mpi_test;

namespace mpi_test {
// operations/main.cc has the subtests; this program has none.
std::vector<subtest> &all_subtests() {
    static std::vector<subtest> none;
    return none;
}

namespace {

// How many were wrong.
int run_rounds(memory &device, MPI_Comm world, MPI_Comm self, bool beside_others,
               const std::string &only, uint64_t seed, int rounds, int64_t bytes) {
    struct kind {
        const char *name;
        void (*run)(round &);
    };
    std::vector<kind> kinds = {{"collective", random_collective},
                               {"reduction", random_reduction},
                               {"message", random_message},
                               {"pack", random_pack}};
    if (only == "broadcast") {
        kinds = {{"broadcast", random_broadcast}};
    } else if (only == "replace") {
        kinds = {{"replace", random_replace}};
    }
    int wrong = 0;
    for (int i = 0; i < rounds; ++i) {
        harness t(device);
        round r(t, seed, i, bytes);
        r.comm = world;
        r.self = self;
        r.beside_others = beside_others;
        const kind &one = kinds[static_cast<size_t>(i) % kinds.size()];
        if (only.empty() || only == one.name) {
            one.run(r);
        }
        if (t.failures() != 0) {
            ++wrong;
            std::printf("WRONG: rank %d, seed %llu, round %d: %s\n", t.rank(),
                        static_cast<unsigned long long>(seed), i, t.first_failure().c_str());
            std::fflush(stdout);
        }
    }
    return wrong;
}

}  // namespace
}  // namespace mpi_test

int main(int argc, char **argv) {
    std::string memory = "host", only;
    uint64_t seed = 1;
    int rounds = 400, threads = 1;
    int64_t bytes = 4 << 10;
    for (int i = 1; i + 1 < argc; i += 2) {
        std::string name = argv[i], value = argv[i + 1];
        if (name == "--memory") {
            memory = value;
        } else if (name == "--rounds") {
            rounds = std::stoi(value);
        } else if (name == "--seed") {
            seed = std::stoull(value);
        } else if (name == "--threads") {
            threads = std::stoi(value);
        } else if (name == "--bytes") {
            bytes = std::stoll(value);
        } else if (name == "--only") {
            only = value;
        } else {
            std::fprintf(stderr, "local_work: unknown option %s\n", name.c_str());
            return 2;
        }
    }
    int provided = MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    int rank = 0, all = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    std::atomic<int> wrong{0};
    {
        auto device = open_memory(memory, rank);
        std::vector<MPI_Comm> worlds(static_cast<size_t>(threads), MPI_COMM_WORLD);
        std::vector<MPI_Comm> selves(worlds.size(), MPI_COMM_SELF);
        std::vector<std::thread> running;
        for (size_t i = 1; i < worlds.size(); ++i) {
            MPI_Comm_dup(MPI_COMM_WORLD, &worlds[i]);
            MPI_Comm_dup(MPI_COMM_SELF, &selves[i]);
        }
        auto work = [&](size_t i) {
            wrong += run_rounds(*device, worlds[i], selves[i], threads > 1, only, seed + i, rounds,
                                bytes);
        };
        for (size_t i = 1; i < worlds.size(); ++i) {
            running.emplace_back(work, i);
        }
        work(0);
        for (size_t i = 1; i < worlds.size(); ++i) {
            running[i - 1].join();
            MPI_Comm_free(&worlds[i]);
            MPI_Comm_free(&selves[i]);
        }
    }
    const int mine = wrong;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        std::printf("%s local_work: %d of %d rounds wrong, seed %llu\n", all == 0 ? "PASS" : "FAIL",
                    all, rounds * threads, static_cast<unsigned long long>(seed));
    }
    MPI_Finalize();
    return all == 0 ? 0 : 1;
}
