// Results of message tests as a table for people, as JSON, as CSV.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/perftest/support/results.hpp"

namespace cuda_nc::tools {

struct message_row {
    std::string test, layout, text, transport;
    uint64_t bytes = 0;  // of one message
    uint64_t blocks = 0;
    unsigned window = 1;  // messages in flight, each way
    unsigned directions = 1;
    size_t misalign = 0;
    summary time, contiguous;  // seconds for a message
    double first_use = 0;      // seconds
    bool verified = false;
    std::string error;                   // why there is no result, or what was wrong with the bytes
    std::string note;                    // for people
    std::map<std::string, double> more;  // further numbers of a test, by name

    double ratio() const { return contiguous.median > 0 ? time.median / contiguous.median : 0; }
};

struct message_heading {
    std::string version, mode, command, date, software, memory, device;
    std::map<std::string, std::string> environment;  // what governs UCX and MPI
};

// Of this process: UCX_*, OMPI_MCA_*, LD_PRELOAD.
std::map<std::string, std::string> message_environment();

nlohmann::json to_json(const message_row &row);
// "transports": what carries the messages, where it is known. `layout_width`: characters of that
// column, at least.
void print_message_heading(const std::string &transport, const std::string &transports,
                           size_t layout_width = 16);
void print_message_row(const message_row &row, size_t layout_width = 16);

std::string file_of(const message_heading &about, const nlohmann::json &rows);
std::string message_csv(const nlohmann::json &rows);

}  // namespace cuda_nc::tools
