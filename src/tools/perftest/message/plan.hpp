// What a run measures. Rank 0 (the client) makes the plan from its options and sends it to all.
#pragma once

#include <string>
#include <vector>

#include "tools/perftest/layouts/cases.hpp"

namespace cuda_nc::tools {

struct message_plan {
    std::vector<std::string> tests;  // latency, bandwidth, bidir, ...
    std::vector<layout_case> cases;
    unsigned window = 64;
    unsigned iterations = 101;
    unsigned warm_up = 3;
    double seconds = 0.5;            // of sampling, for each row
    double timeout = 60;             // seconds that a wait for a peer may take at most
    size_t buffer_size = 256 << 20;  // bytes of each side's buffers, at most, beyond one message
    bool verify = true;
    std::string inject;               // byte or gap: spoils what was received, to test the checks
    std::vector<std::string> memory;  // of each rank in turn: host, gpu, managed ...
    std::vector<int> gpus;            // of each rank in turn
    std::string transport;            // y, n
    bool more = false;                // another plan follows
};

std::string to_json(const message_plan &plan);
message_plan plan_from_json(const std::string &text);  // throws run_error

template <class Value>
const Value &of_rank(const std::vector<Value> &values, int rank) {
    return values[static_cast<size_t>(rank) % values.size()];
}

}  // namespace cuda_nc::tools
