// Which kernels are best on a GPU, found by trying.
#pragma once

#include <string>

#include "tools/perftest/tune/steps.hpp"
#include "ucs/gpu/device.hpp"
#include "ucs/model/profile.hpp"

namespace cuda_nc::tools {

// Steps of measure_rules().
size_t count_rule_trials();

// One rule after the other: tries other values on layouts about which it decides, and keeps one by
// which they are faster by more than noise and none is slower. From the usual rules to of->rules,
// which are in force from then on. Takes a part of the time only.
void measure_rules(gpu::device &device, const place &where, const std::string &who,
                   const tune_options &how, time_budget *budget, model::gpu_profile *of);

// Puts a copy of the rules in force that stays.
void follow_rules(gpu::device &device, const gpu::kernel_rules &rules);

// "usual", or those that are not.
std::string text_of(const gpu::kernel_rules &rules);

}  // namespace cuda_nc::tools
