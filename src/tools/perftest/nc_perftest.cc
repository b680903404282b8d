// nc_perftest: how fast derived datatypes move here. One mode for each kind of question.
#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include <cstdio>
#include <functional>
#include <string>

#include "cuda_nc/cuda_nc.h"
#include "tools/perftest/p2p_mode.hpp"
#include "tools/perftest/pack_mode.hpp"

int main(int argc, char **argv) {
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
    CLI11_PARSE(app, argc, argv);
    try {
        return run();
    } catch (const std::exception &failure) {
        fmt::print(stderr, "nc_perftest: {}\n", failure.what());
        return 1;
    }
}
