#include "tools/perftest/message/plan.hpp"

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "tools/perftest/support/run_error.hpp"
#include "tools/perftest/layouts/sizes.hpp"

namespace cuda_nc::tools {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(layout_case, name, text, misalign, bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(message_plan, tests, cases, window, iterations, warm_up, seconds,
                                   timeout, buffer_size, verify, inject, memory, gpus, transport,
                                   more)

std::string to_json(const message_plan &plan) {
    const nlohmann::json all = plan;
    return all.dump();
}

message_plan plan_from_json(const std::string &text) {
    try {
        return nlohmann::json::parse(text).get<message_plan>();
    } catch (const nlohmann::json::exception &wrong) {
        throw run_error(
            fmt::format("the other process is not nc_perftest of this release: {}", wrong.what()));
    }
}

}  // namespace cuda_nc::tools
