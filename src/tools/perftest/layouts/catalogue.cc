#include "tools/perftest/layouts/catalogue.hpp"

#include <fmt/format.h>

#include <map>

#include "tools/perftest/layouts/applications.hpp"
#include "tools/perftest/layouts/tables.hpp"
#include "tools/perftest/support/run_error.hpp"
#include "ucs/layout/layout_spec.hpp"

namespace cuda_nc::tools {
namespace {

template <size_t Size>
std::vector<named_layout> listed(const layout_row (&rows)[Size]) {
    std::vector<named_layout> made;
    for (const layout_row &row : rows) {
        made.push_back({row.name, row.text, row.misalign, {row.pack_bar, row.unpack_bar}});
    }
    return made;
}

const std::map<std::string, std::vector<named_layout>> &sets() {
    static const std::map<std::string, std::vector<named_layout>> all = {
        {"standard", listed(standard_layouts)},
        {"messages", listed(message_layouts)},
        {"applications", application_layouts()},
        {"small", listed(small_layouts)},
    };
    return all;
}

}  // namespace

const std::vector<named_layout> *find_set(const std::string &name) {
    auto found = sets().find(name);
    return found == sets().end() ? nullptr : &found->second;
}

std::vector<std::string> set_names() {
    std::vector<std::string> names;
    for (const auto &one : sets()) {
        names.push_back(one.first);
    }
    return names;
}

std::optional<named_layout> find_layout(const std::string &name_or_text) {
    for (const auto &set : sets()) {
        for (const named_layout &one : set.second) {
            if (one.name == name_or_text) {
                return one;
            }
        }
    }
    if (name_or_text.find(':') == std::string::npos) {
        return std::nullopt;
    }
    return named_layout{name_or_text, name_or_text, 0, {}};
}

layout_ref layout_of(const std::string &text) {
    std::string error;
    layout_ref what = parse_layout(text, &error);
    if (what == nullptr) {
        throw run_error(error);
    }
    return what;
}

int list_layouts() {
    for (const std::string &set : set_names()) {
        fmt::print("{}:\n", set);
        for (const named_layout &one : *find_set(set)) {
            fmt::print("  {:<24} {}{}\n", one.name, one.text,
                       one.misalign == 0 ? "" : fmt::format(", buffer off by {} B", one.misalign));
        }
    }
    return 0;
}

}  // namespace cuda_nc::tools
