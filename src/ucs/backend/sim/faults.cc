#include "ucs/backend/sim/faults.hpp"

#include <algorithm>
#include <cstdlib>

#include "ucs/base/log.hpp"

namespace cuda_nc::gpu::sim {
namespace {

const char *const names[num_faults] = {"alloc",    "pinned", "pin",   "stream",     "event",
                                       "ipc_open", "launch", "load",  "copy",       "mark",
                                       "kernel",   "stuck",  "mover", "mover_dies", "mover_late"};

bool is_digit(char c) noexcept {
    return c >= '0' && c <= '9';
}

}  // namespace

bool fault_plan::parse(const std::string &text, std::string *error_p) {
    for (size_t begin = 0; begin < text.size();) {
        size_t end = std::min(text.find(',', begin), text.size());
        std::string item = text.substr(begin, end - begin);
        begin = end + 1;
        size_t colon = item.find(':');
        std::string name = item.substr(0, colon);
        const char *value = colon == std::string::npos ? "" : item.c_str() + colon + 1;
        char *rest = nullptr;
        bool good = is_digit(*value);
        if (good && name == "slow") {
            slow_ = std::strtod(value, &rest);
            good = *rest == '\0' && slow_ >= 0 && slow_ <= 1e6;
        } else if (good) {
            uint64_t first = std::strtoull(value, &rest, 10);
            bool all_from = *rest == '+';
            unsigned what = 0;
            while (what < num_faults && name != names[what]) {
                ++what;
            }
            good = what < num_faults && first != 0 && rest[all_from ? 1 : 0] == '\0';
            if (good) {
                entries_[what].push_back({first, all_from ? UINT64_MAX : first});
            }
        }
        if (!good) {
            std::string all;
            for (const char *one : names) {
                all += (all.empty() ? "" : ", ") + std::string(one);
            }
            *error_p = "UCX_CUDA_NC_SIM_FAULTS: \"" + item +
                       "\" is not a fault; write WHAT:n, WHAT:n+ or slow:F, with WHAT one of " +
                       all;
            return false;
        }
    }
    return true;
}

bool fault_plan::strikes(fault what) noexcept {
    auto index = static_cast<unsigned>(what);
    if (entries_[index].empty()) {
        return false;
    }
    uint64_t number = counts_[index].fetch_add(1, std::memory_order_relaxed) + 1;
    for (const entry &one : entries_[index]) {
        if (number >= one.from && number <= one.to) {
            nc_debug("simulated GPU: fault injected into %s %llu", names[index],
                     static_cast<unsigned long long>(number));
            return true;
        }
    }
    return false;
}

}  // namespace cuda_nc::gpu::sim
