// What `nc_perftest tune` tries for each of the rules by which kernels are chosen, and on what.
#pragma once

#include <vector>

#include "tools/perftest/tune/points.hpp"
#include "ucs/gpu/kernel_rules.hpp"

namespace cuda_nc::tools {

struct rule_trial {
    uint32_t gpu::kernel_rules::*rule;
    std::vector<uint32_t> values;
    bool flips = false;  // the values are bits to change
};

struct rule_group {
    std::vector<tune_point> points;  // both directions; those that a value says nothing about are
                                     // not measured
    std::vector<rule_trial> trials;  // in this order
};

const std::vector<rule_group> &rule_groups();

}  // namespace cuda_nc::tools
