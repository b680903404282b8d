// Messages by number, while calls into UCP may end any of them.
#pragma once

#include <cstdint>

namespace cuda_nc::uct {

// Calls `what` for each message that is there when its turn comes.
template <typename map, typename function>
void for_each(map &all, function what) {
    for (auto at = all.begin(); at != all.end();) {
        uint64_t key = at->first;
        what(*at->second);
        at = all.upper_bound(key);
    }
}

template <typename map>
auto *find(const map &in, uint64_t key) noexcept {
    auto found = in.find(key);
    return found != in.end() ? found->second.get() : nullptr;
}

}  // namespace cuda_nc::uct
