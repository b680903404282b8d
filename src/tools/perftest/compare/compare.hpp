// Two result files of nc_perftest, row by row: what differs by more than noise.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace cuda_nc::tools {

enum class verdict {
    same,     // within the threshold
    faster,   // B takes less time than A
    slower,   // B takes more
    unclear,  // the medians differ by more than the threshold, but noise may have done that
    missing,  // A has it, B has not, or no result
    added     // B has it, A has not
};

const char *name_of(verdict what) noexcept;

struct compared_row {
    std::string key;                       // what the rows of both files have in common
    double a_us = 0, b_us = 0, ratio = 0;  // medians; B over A
    double low = 0, high = 0;              // the ratio lies there with high probability
    verdict is = verdict::missing;
    std::string remark;
};

struct compare_options {
    double threshold = 0.05;     // of the ratio, from 1
    std::string field = "time";  // or plain_copy, contiguous, relative (time over its reference)
    bool any_transport = false;  // rows with and without the transport are the same
};

// Rows in A's order, then B's own. Throws run_error where the files cannot be compared: no
// rows, or rows without names, a key twice, different modes, no such field.
std::vector<compared_row> compare_results(const nlohmann::json &a, const nlohmann::json &b,
                                          const compare_options &options);

}  // namespace cuda_nc::tools
