// nc_perftest p2p: messages between two processes through UCP.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <string>

namespace cuda_nc::tools {

// As add_pack_mode.
void add_p2p_mode(CLI::App *app, const std::string &command, std::function<int()> *run_p);

}  // namespace cuda_nc::tools
