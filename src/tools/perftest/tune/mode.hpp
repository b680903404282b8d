// nc_perftest tune: measures this machine for the engine's choices and for predictions.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>

namespace cuda_nc::tools {

void add_tune_mode(CLI::App *app, std::function<int()> *run_p);

}  // namespace cuda_nc::tools
