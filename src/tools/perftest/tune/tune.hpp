// Measures a machine: what `nc_perftest tune` writes into its profile.
#pragma once

#include <functional>
#include <string>

#include "ucs/model/profile.hpp"

namespace cuda_nc::tools {

struct tune_options {
    double seconds = 50;  // what is not measured by then is left out
    // Called before each step; `done` of 1.
    std::function<void(double done, const std::string &step)> progress;
    // Called with a sentence on each rule for choosing kernels that is not left as usual, and on
    // each value that was tried.
    std::function<void(const std::string &)> found, tried;
};

// The host's figures and those of all GPUs of the platform. `*left_out_p`: steps for which there
// was no time or memory; a GPU of which nothing is known is left out altogether.
model::machine_profile measure_machine(const tune_options &how, unsigned *left_out_p);

}  // namespace cuda_nc::tools
