// nc_perftest pack: how fast layouts are packed, unpacked and copied, by one GPU or by the host.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <string>

namespace cuda_nc::tools {

// Adds the options; returns what runs the mode once they are parsed. `command` is the command line.
std::function<int()> add_pack_options(CLI::App *mode, const std::string &command);

}  // namespace cuda_nc::tools
