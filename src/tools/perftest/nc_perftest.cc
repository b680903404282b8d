// nc_perftest: how fast derived datatypes move here. One mode for each kind of question.
#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>

#include "cuda_nc/cuda_nc.h"
#include "tools/perftest/compare/mode.hpp"
#include "tools/perftest/message/p2p_mode.hpp"
#include "tools/perftest/pack/mode.hpp"
#include "tools/perftest/support/program.hpp"
#include "tools/perftest/tune/mode.hpp"

namespace {

// Runs nc_perftest_mpi, which lies beside this program and alone links an MPI.
[[noreturn]] void become_mpi_program(char **argv) {
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
    std::string program(path, length > 0 ? static_cast<size_t>(length) : 0);
    program += "_mpi";
    execv(program.c_str(), argv + 1);
    fmt::print(stderr,
               "nc_perftest: {} cannot be run: {}. It is built where configure finds an MPI "
               "(--with-mpi=MPICXX), or by make nc_perftest_mpi MPICXX=...\n",
               program, std::strerror(errno));
    std::exit(1);
}

struct mode {
    const char *name, *help;
    std::function<int()> (*add_options)(CLI::App *, const std::string &command);
};

const mode modes[] = {
    {"pack", "Measure packing, unpacking and copying, on one GPU or on the host",
     cuda_nc::tools::add_pack_options},
    {"p2p", "Measure messages between two processes through UCP; without HOST this is the server",
     cuda_nc::tools::add_p2p_options},
    {"compare",
     "Compare two result files (--json) row by row. Status 1: B is slower or lacks a result; 2: "
     "they cannot be compared",
     cuda_nc::tools::add_compare_options},
    {"tune", "Measure this machine, for the engine's choices and for nc_info --explain",
     cuda_nc::tools::add_tune_options},
    // main() hands it over to another program before the options are read.
    {"mpi", "Measure messages between the ranks of an MPI job: mpirun ... nc_perftest mpi",
     nullptr},
};

int run(int argc, char **argv) {
    std::string command = "nc_perftest";
    for (int i = 1; i < argc; ++i) {
        command += std::string(" ") + argv[i];
    }
    CLI::App app("Measures how fast derived datatypes are packed, unpacked, copied and sent.",
                 "nc_perftest");
    app.set_version_flag("--version", cuda_nc_version());
    app.require_subcommand(1);
    std::function<int()> chosen;
    for (const mode &one : modes) {
        CLI::App *options = app.add_subcommand(one.name, one.help);
        if (one.add_options != nullptr) {
            options->callback(
                [&chosen, work = one.add_options(options, command)] { chosen = work; });
        }
    }
    CLI11_PARSE(app, argc, argv);
    return chosen();
}

}  // namespace

int main(int argc, char **argv) {
    if (argc > 1 && std::strcmp(argv[1], "mpi") == 0) {
        become_mpi_program(argv);
    }
    return cuda_nc::tools::run_program("nc_perftest", [&] { return run(argc, argv); });
}
