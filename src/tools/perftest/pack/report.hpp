// Results of nc_perftest pack as a table for people, as JSON, as CSV.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/perftest/support/results.hpp"

namespace cuda_nc::tools {

struct result_row {
    std::string layout, text, direction;
    uint64_t bytes = 0;
    uint64_t blocks = 0;
    size_t table_bytes = 0;  // of lists, where they are read
    size_t misalign = 0;
    unsigned max_sms = 0;  // 0: all of the GPU, or no GPU
    uint64_t touched = 0;  // bytes of sectors read and written; 0: not known
    summary time, plain_copy, sector_copy;
    double first_use = 0;  // seconds
    double listing = 0;    // seconds: a list's blocks made into the layout; 0: not a list
    double bar = 0;        // of time over plain_copy; 0: none
    std::string error;     // why there is no result, or what was wrong with the bytes
    bool verified = false;

    double ratio() const { return plain_copy.median > 0 ? time.median / plain_copy.median : 0; }
    // 0: there is no such copy.
    double sector_ratio() const {
        return sector_copy.median > 0 ? time.median / sector_copy.median : 0;
    }
    // Within 2% of the bar.
    bool within_bar() const { return bar == 0 || ratio() <= bar * 1.02; }
};

struct result_file {
    std::string version, mode, command, date, device, memory;
    unsigned iterations = 0, batch = 0, warm_up = 0, max_sms = 0;
    std::vector<result_row> rows;
};

void print_heading(const result_file &about);
void print_row(const result_row &row);
std::string to_json(const result_file &all);
std::string to_csv(const result_file &all);

}  // namespace cuda_nc::tools
