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

// nc_perftest_mpi, beside this program: nothing here links to an MPI.
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

int run(int argc, char **argv) {
    std::string command;
    for (int i = 0; i < argc; ++i) {
        command += (i == 0 ? "" : " ") + std::string(i == 0 ? "nc_perftest" : argv[i]);
    }
    CLI::App app("Measures how fast derived datatypes are packed, unpacked, copied and sent.",
                 "nc_perftest");
    app.set_version_flag("--version", cuda_nc_version());
    app.require_subcommand(1);
    std::function<int()> run;
    cuda_nc::tools::add_pack_mode(&app, command, &run);
    cuda_nc::tools::add_p2p_mode(&app, command, &run);
    cuda_nc::tools::add_compare_mode(&app, &run);
    cuda_nc::tools::add_tune_mode(&app, &run);
    app.add_subcommand("mpi",
                       "Messages between the ranks of an MPI job: mpirun ... nc_perftest mpi");
    CLI11_PARSE(app, argc, argv);
    return run();
}

}  // namespace

int main(int argc, char **argv) {
    if (argc > 1 && std::strcmp(argv[1], "mpi") == 0) {
        become_mpi_program(argv);
    }
    return cuda_nc::tools::run_program("nc_perftest", [&] { return run(argc, argv); });
}
