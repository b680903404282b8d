// Every MPI operation that the product serves, with derived datatypes; every byte is compared with
// type maps that the test computes itself.
//
// operations [--memory KINDS] [--kind pair|collective|threads|sides] [--only NAME] [--after NAME]
//            [--limit SECONDS] [--full] [--list]
//
// Prints, for each subtest, "RUN name" and then "PASS name" or "FAIL name: what"; at last "END".
// A subtest that crashes or takes longer than the limit ends the program after its FAIL line;
// --after goes on behind it. Of kind sides: "SIDES rank: S, R" says how many messages must have
// been counted as sent straight and as received on GPUs. KINDS: host, sim, cuda, or a list that the
// ranks take turns over.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "operations/deadline.hpp"
#include "operations/harness.hpp"

namespace mpi_test {

std::vector<subtest> &all_subtests() {
    static std::vector<subtest> all;
    return all;
}

namespace {

struct options {
    std::string memory = "host", kind = "pair", only, after;
    unsigned limit = 60;
    bool full = false, list = false;
};

options parse(int argc, char **argv) {
    options o;
    for (int i = 1; i < argc; ++i) {
        std::string name = argv[i];
        if (name == "--full") {
            o.full = true;
            continue;
        }
        if (name == "--list") {
            o.list = true;
            continue;
        }
        std::string value = i + 1 < argc ? argv[++i] : "";
        if (name == "--memory") {
            o.memory = value;
        } else if (name == "--kind") {
            o.kind = value;
        } else if (name == "--only") {
            o.only = value;
        } else if (name == "--after") {
            o.after = value;
        } else if (name == "--limit") {
            o.limit = static_cast<unsigned>(std::stoul(value));
        } else {
            std::fprintf(stderr, "operations: unknown option %s\n", name.c_str());
            std::exit(2);
        }
    }
    return o;
}

std::vector<subtest> chosen(const options &o) {
    subtest::kind wanted = o.kind == "threads"      ? subtest::kind::threads
                           : o.kind == "sides"      ? subtest::kind::sides
                           : o.kind == "collective" ? subtest::kind::collective
                                                    : subtest::kind::pair;
    std::vector<subtest> result;
    bool behind = o.after.empty();
    for (const subtest &test : all_subtests()) {
        if (behind && test.of == wanted && (o.only.empty() || o.only == test.name) &&
            (test.in == subtest::where::everywhere || o.memory == "host") &&
            (test.in != subtest::where::host_at_full || o.full)) {
            result.push_back(test);
        }
        behind = behind || o.after == test.name;
    }
    return result;
}

// Whether the subtest passed on every rank; collective.
bool run(const subtest &test, harness &all_of, memory &device, const options &o) {
    harness t(device);
    if (t.rank() == 0) {
        std::printf("RUN %s\n", test.name);
        std::fflush(stdout);
    }
    start_deadline(test.name, o.limit);
    test.run(t);
    all_of.from_gpu_to_gpu += t.from_gpu_to_gpu;
    all_of.to_gpu_from_gpu += t.to_gpu_from_gpu;
    int failures = t.failures(), all = 0;
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    stop_deadline();
    if (failures != 0) {
        std::printf("# rank %d: %s: %d wrong, first: %s\n", t.rank(), test.name, failures,
                    t.first_failure().c_str());
        std::fflush(stdout);
    }
    if (t.rank() == 0) {
        if (all == 0) {
            std::printf("PASS %s\n", test.name);
        } else {
            std::printf("FAIL %s: %d wrong\n", test.name, all);
        }
        std::fflush(stdout);
    }
    return all == 0;
}

int run_all(const options &o) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    watch_signals(rank);
    std::unique_ptr<memory> device = open_memory(o.memory, rank);
    bool right = true;
    harness all(*device);
    for (const subtest &test : chosen(o)) {
        right = run(test, all, *device, o) && right;
    }
    if (o.kind == "sides") {
        std::printf("SIDES %d: %d, %d\n", rank, all.from_gpu_to_gpu, all.to_gpu_from_gpu);
    }
    if (rank == 0) {
        std::printf("END\n");
        std::fflush(stdout);
    }
    return right ? 0 : 1;
}

}  // namespace
}  // namespace mpi_test

int main(int argc, char **argv) {
    using namespace mpi_test;
    options o = parse(argc, argv);
    if (o.list) {
        for (const subtest &test : chosen(o)) {
            std::puts(test.name);
        }
        return 0;
    }
    int wanted = o.kind == "threads" ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, got = 0;
    MPI_Init_thread(&argc, &argv, wanted, &got);
    if (got < wanted) {
        std::printf("SKIP threads: this MPI has no MPI_THREAD_MULTIPLE\nEND\n");
        MPI_Finalize();
        return 0;
    }
    int status = 3;
    try {
        status = run_all(o);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "operations: %s\n", error.what());
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    MPI_Finalize();
    return status;
}
