// gpu-accidents reset|trap|exit|reuse|messages|open|contiguous|guest|landing|full|first-early|
//               first-reset|nccl-before|nccl-after [--count N] [--bytes N] [--kind KIND] [--limit
//               SECONDS]
//
// Exit status: 0; 1 wrong bytes; 77 this machine cannot run it; 124 no end within the limit.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "accidents/cases.hpp"

using namespace gpu_test;

namespace {

void give_up(int) {
    constexpr char text[] = "HANG\n";
    ssize_t ignored = write(STDOUT_FILENO, text, sizeof(text) - 1);
    static_cast<void>(ignored);
    _exit(124);
}

int run(const std::string &name, const case_options &options) {
    const std::map<std::string, int (*)(const case_options &)> all = {
        {"reset", run_reset},
        {"trap", run_trap},
        {"exit", run_exit},
        {"reuse", run_reuse},
        {"messages", run_messages},
        {"open", run_open},
        {"contiguous", run_contiguous},
        {"guest", run_guest},
        {"landing", run_landing},
        {"full", run_full},
        {"first-early", run_first_early},
        {"first-reset", run_first_reset},
        {"nccl-before", run_nccl_before},
        {"nccl-after", run_nccl_after}};
    try {
        return all.at(name)(options) == 0 ? 0 : 1;
    } catch (const skipped &why) {
        std::printf("SKIPPED %s\n", why.what());
        std::fflush(stdout);
        MPI_Abort(MPI_COMM_WORLD, 77);
    } catch (const std::exception &error) {
        std::printf("WRONG %s\n", error.what());
        std::fflush(stdout);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return 1;
}

}  // namespace

int main(int argc, char **argv) {
    case_options options;
    unsigned limit = 120;
    for (int i = 2; i + 1 < argc; i += 2) {
        const std::string name = argv[i];
        if (name == "--count") {
            options.count = std::atoi(argv[i + 1]);
        } else if (name == "--bytes") {
            options.bytes = std::strtoull(argv[i + 1], nullptr, 10);
        } else if (name == "--kind") {
            options.kind = argv[i + 1];
        } else if (name == "--limit") {
            limit = static_cast<unsigned>(std::atoi(argv[i + 1]));
        }
    }
    std::signal(SIGALRM, give_up);
    alarm(limit);
    if (argc > 1 && std::string(argv[1]) == "first-early") {
        const char *const rank = std::getenv("OMPI_COMM_WORLD_RANK");
        allocate_early(rank != nullptr ? std::atoi(rank) : 0);
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &options.rank);
    const int status = run(argc > 1 ? argv[1] : "", options);
    MPI_Finalize();
    return status;
}
