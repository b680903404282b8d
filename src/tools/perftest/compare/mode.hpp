// nc_perftest compare A.json B.json
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <string>

namespace cuda_nc::tools {

// Adds the options; returns what runs the mode once they are parsed. `command` is the command line.
std::function<int()> add_compare_options(CLI::App *mode, const std::string &command);

}  // namespace cuda_nc::tools
