#include "tools/perftest/message/plan.hpp"

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "tools/perftest/support/run_error.hpp"
#include "tools/perftest/layouts/sizes.hpp"

namespace cuda_nc::tools {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(message_case, name, text, misalign, bytes)
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

std::vector<message_case> make_cases(const std::vector<std::string> &layouts,
                                     const std::vector<uint64_t> &sizes, size_t misalign,
                                     std::vector<std::string> *notes_p) {
    std::vector<message_case> cases;
    for (uint64_t size : sizes) {
        for (const std::string &wanted : layouts) {
            const std::optional<named_layout> known = find_layout(wanted);
            if (!known) {
                throw run_error(fmt::format(
                    "\"{}\" is neither a known layout (--list shows them) nor a text form such as "
                    "vector:1024,8,16 or vector:*,8,16",
                    wanted));
            }
            const std::optional<fitted_layout> fitted = fit_layout(known->text, size);
            if (!fitted) {
                notes_p->push_back(fmt::format("{}: no message of {} bytes", known->name, size));
                continue;
            }
            auto is_same = [&](const message_case &other) {
                return other.name == known->name && other.text == fitted->text;
            };
            if (std::none_of(cases.begin(), cases.end(), is_same)) {
                cases.push_back(
                    {known->name, fitted->text, known->misalign + misalign, fitted->bytes});
            }
        }
    }
    return cases;
}

}  // namespace cuda_nc::tools
