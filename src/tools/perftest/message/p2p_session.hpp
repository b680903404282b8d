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
    bool good = true;  // every row has a result, and both processes ended well
};

// To be called where both sides are children of this process and share its standard error. A side
// that finds the other one gone then prints nothing, because the other has printed why.
void share_terminal() noexcept;

// Serves one client after the other until one has no further plan. Returns the exit status.
int serve(const listener &at, double limit_s);

// Runs the plan with the server at `host`, prints its rows and adds them to *results_p.
void run_plan(const message_plan &plan, const std::string &host, int port, p2p_results *results_p);

}  // namespace cuda_nc::tools
