// nc_perftest compare A.json B.json
#pragma once

#include <CLI/CLI.hpp>

#include <functional>

namespace cuda_nc::tools {

void add_compare_mode(CLI::App *app, std::function<int()> *run_p);

}  // namespace cuda_nc::tools
