// Predictions of a profile beside measurements.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/perftest/layouts/catalogue.hpp"
#include "ucs/model/profile.hpp"

namespace cuda_nc::tools {

struct checked_row {
    std::string layout, text, direction, error;
    size_t misalign = 0;
    double measured = 0, predicted = 0;  // us of one of many calls

    double ratio() const { return measured > 0 ? predicted / measured : 0; }
    bool near() const { return ratio() >= 1 / 1.25 && ratio() <= 1.25; }
};

// Measures and predicts pack and unpack of each layout, on GPU 0 or the host, and prints a row of
// each as it comes.
std::vector<checked_row> check_predictions(const model::machine_profile &profile, bool on_gpu,
                                           const std::vector<named_layout> &layouts);

// "44 of 48 (92%) within 25%".
std::string share_of(const std::vector<checked_row> &rows);
// Whether `percent` of them are, or more. Rows that failed are not; of no rows 0 % are.
bool enough_near(const std::vector<checked_row> &rows, double percent);

nlohmann::json to_json(const std::vector<checked_row> &rows);

}  // namespace cuda_nc::tools
