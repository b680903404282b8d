// nc_perftest pack: pack, unpack and copy between layouts, within one process.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <string>

namespace cuda_nc::tools {

// Adds the mode and its options. *run_p is called after a successful parse if the mode was chosen;
// its result is the program's exit status. `command` is what the user typed.
void add_pack_mode(CLI::App *app, const std::string &command, std::function<int()> *run_p);

}  // namespace cuda_nc::tools
