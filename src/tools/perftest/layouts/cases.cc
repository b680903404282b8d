#include "tools/perftest/layouts/cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "tools/perftest/layouts/catalogue.hpp"
#include "tools/perftest/layouts/sizes.hpp"
#include "tools/perftest/support/run_error.hpp"

namespace cuda_nc::tools {

std::vector<layout_case> make_cases(const std::vector<std::string> &layouts,
                                    const std::vector<uint64_t> &sizes, size_t misalign,
                                    std::vector<std::string> *notes_p) {
    std::vector<layout_case> cases;
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
            auto is_same = [&](const layout_case &other) {
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
