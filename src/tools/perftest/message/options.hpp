// Options that the modes p2p and mpi share.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "tools/perftest/message/plan.hpp"
#include "tools/perftest/message/report.hpp"

namespace cuda_nc::tools {

struct message_options {
    std::vector<std::string> layouts, tests{"latency"}, memory{"auto"};
    std::string set = "messages", sizes = "8,512,4K,64K,1M,16M", json, csv, command;
    std::vector<int> gpus{0, 1};
    size_t misalign = 0;
    bool bidir = false, no_verify = false, list = false;
    message_plan plan;
};

// Adds the options; `tests` are the names that -t takes.
void add_message_options(CLI::App *mode, message_options *o, const std::vector<std::string> &tests);

// Makes the plan of the options, without its transport; memory "auto" stays. Prints what it leaves
// out. Throws run_error.
message_plan make_plan(const message_options &o);

// Replaces "auto" by gpu where this process has a GPU, else by host.
void choose_memory(message_plan *plan);

// Writes the files that were asked for.
void save_results(const message_options &o, const message_heading &about,
                  const nlohmann::json &rows);

}  // namespace cuda_nc::tools
