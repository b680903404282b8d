#include "uct/cuda_nc/carrier.hpp"

#include <algorithm>
#include <cstring>

namespace cuda_nc::uct {

using namespace abi;

uct_component *carrier::find_component(const ucx_api &ucx) const noexcept {
    uct_component *found = nullptr;
    for_each_component(ucx, [&](uct_component *candidate) {
        const ucs_list_link &head = candidate->tl_list;
        for (ucs_list_link *link = head.next; link != &head; link = link->next) {
            auto *tl =
                reinterpret_cast<uct_tl *>(reinterpret_cast<char *>(link) - offsetof(uct_tl, list));
            if (found == nullptr && std::strncmp(tl->name, name.c_str(), sizeof(tl->name)) == 0) {
                found = candidate;
            }
        }
    });
    return found;
}

uint16_t carrier::kind() const noexcept {
    uint32_t hash = 2166136261u;  // FNV-1a, folded
    for (char letter : name) {
        hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619u;
    }
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
