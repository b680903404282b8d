#include "uct/cuda_nc/carrier/carrier.hpp"

#include <algorithm>
#include <cstring>

#include "ucs/base/bits.hpp"
#include "ucs/base/log.hpp"
#include "ucs/base/settings.hpp"
#include "uct/cuda_nc/component.hpp"

namespace cuda_nc::uct {

using namespace abi;

uct_component *carrier::find_component() const noexcept {
    uct_component *found = nullptr;
    for_each_transport(*ucx, [&](uct_component *candidate, const uct_tl &tl) {
        if (found == nullptr && is_named(tl, name.c_str())) {
            found = candidate;
        }
    });
    return found;
}

std::vector<std::string> names_of_transports(const ucx_api &ucx) {
    std::vector<std::string> names;
    for_each_transport(ucx, [&](uct_component *, const uct_tl &tl) {
        const std::string name(tl.name, strnlen(tl.name, sizeof(tl.name)));
        if (name != transport_name) {
            names.push_back(name);
        }
    });
    return names;
}

void warn_without_carriers(const ucx_api &ucx) {
    const std::string &setting = config().carriers;
    const std::vector<std::string> wanted = split_names(setting), all = names_of_transports(ucx);
    if (std::find_first_of(all.begin(), all.end(), wanted.begin(), wanted.end()) != all.end()) {
        return;
    }
    std::string text;
    for (const std::string &name : all) {
        text += (text.empty() ? "" : ", ") + name;
    }
    nc_warn_once(
        "UCX_CUDA_NC_CARRIERS=%s: UCX has none of these transports, so cuda_nc is disabled; "
        "available: %s",
        setting.c_str(), text.c_str());
}

uint16_t carrier::kind() const noexcept {
    const uint32_t hash = fnv1a(name.c_str());
    return static_cast<uint16_t>(hash ^ (hash >> 16));
}

std::vector<std::string> split_names(const std::string &list) {
    std::vector<std::string> names;
    for (size_t begin = 0; begin <= list.size();) {
        size_t end = std::min(list.find(',', begin), list.size());
        std::string name = list.substr(begin, end - begin);
        if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) {
            names.push_back(name);
        }
        begin = end + 1;
    }
    return names;
}

}  // namespace cuda_nc::uct
