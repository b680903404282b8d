// The two sides of nc_perftest p2p. UCX reads its settings once in a process, so each plan runs in
// a process of its own, on both sides.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "tools/perftest/message/plan.hpp"
#include "tools/perftest/message/socket.hpp"

namespace cuda_nc::tools {

struct p2p_results {
    nlohmann::json rows = nlohmann::json::array();
    std::string software, device, memory;
    bool good = true;  // every row, and the way there
};

// Both sides are children of this process, with one standard error: the side that finds the other
// gone does not say so, for the other has said why.
void share_terminal() noexcept;

// Waits for one client after the other as long as plans follow; the process's exit status.
int serve(const listener &at, double limit_s);

// Runs the plan with the server there, prints its rows, adds them to *results_p.
void run_plan(const message_plan &plan, const std::string &host, int port, p2p_results *results_p);

}  // namespace cuda_nc::tools
