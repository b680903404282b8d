#include "tools/perftest/pack/layouts.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "tools/perftest/layouts/cases.hpp"
#include "tools/perftest/support/run_error.hpp"
#include "tools/perftest/layouts/sizes.hpp"

namespace cuda_nc::tools {
namespace {

std::vector<std::string> names_of(const layout_choice &from) {
    std::vector<std::string> names;
    if (!from.set.empty()) {
        const std::vector<named_layout> *set = find_set(from.set);
        if (set == nullptr) {
            throw run_error(fmt::format("there is no set \"{}\"; there are: {}", from.set,
                                        fmt::join(set_names(), ", ")));
        }
        for (const named_layout &one : *set) {
            names.push_back(one.name);
        }
    }
    names.insert(names.end(), from.layouts.begin(), from.layouts.end());
    if (names.empty()) {
        throw run_error("nothing to measure: give --layout or --set");
    }
    return names;
}

void check_sizes_of(const std::vector<std::string> &names) {
    for (const std::string &name : names) {
        const std::optional<named_layout> known = find_layout(name);
        if (known && is_family(known->text)) {
            throw run_error(
                fmt::format("{} is a layout of any size: give --sizes, or a number for * in {}",
                            name, known->text));
        }
    }
}

}  // namespace

std::vector<named_layout> choose_layouts(const layout_choice &from,
                                         std::vector<std::string> *notes_p) {
    const std::vector<std::string> names = names_of(from);
    std::vector<uint64_t> sizes{1};  // of any one where no layout has more
    if (from.sizes.empty()) {
        check_sizes_of(names);
    } else {
        sizes = parse_sizes(from.sizes);
    }
    std::vector<named_layout> chosen;
    for (const layout_case &one : make_cases(names, sizes, from.misalign, notes_p)) {
        named_layout made = *find_layout(one.name);
        made.text = one.text;
        made.misalign = one.misalign;
        chosen.push_back(made);
    }
    if (chosen.empty()) {
        throw run_error("nothing to measure: no layout has these sizes");
    }
    return chosen;
}

}  // namespace cuda_nc::tools
