#include "ucs/base/statistics.hpp"

#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

namespace cuda_nc {
namespace {

using key = std::tuple<std::string, std::string, std::string, std::string>;

struct counter {
    uint64_t messages = 0, bytes = 0;
};

// Programs that adapt their meshes make shapes without end: later ones share a line.
constexpr size_t most_lines = 1024;
constexpr const char *other_shapes = "other shapes";

struct registry {
    std::mutex mutex;
    std::map<key, counter> counters;
    std::vector<statistics_source> sources;
    pid_t owner = getpid();
};

void print_at_exit();

registry &get_registry() {
    static registry *only = [] {
        auto *made = new registry;
        std::atexit(print_at_exit);
        return made;
    }();
    return *only;
}

void print_at_exit() {
    if (get_registry().owner != getpid()) {
        return;  // a forked child has sent nothing
    }
    std::string text = format_statistics();
    if (!text.empty()) {
        std::fputs(text.c_str(), stderr);
    }
}

}  // namespace

void count_message_slow(const char *operation, const std::string &shape, const char *path,
                        const char *why, uint64_t bytes) noexcept {
    try {
        registry &all = get_registry();
        std::lock_guard<std::mutex> guard(all.mutex);
        key line(operation, shape, path, why);
        if (all.counters.size() >= most_lines && all.counters.count(line) == 0) {
            std::get<1>(line) = other_shapes;
        }
        counter &one = all.counters[line];
        ++one.messages;
        one.bytes += bytes;
    } catch (...) {
        // a lost count harms nobody
    }
}

void add_statistics_source(statistics_source source) noexcept {
    if (!statistics_enabled()) {
        return;
    }
    try {
        registry &all = get_registry();
        std::lock_guard<std::mutex> guard(all.mutex);
        if (std::find(all.sources.begin(), all.sources.end(), source) == all.sources.end()) {
            all.sources.push_back(source);
        }
    } catch (...) {
    }
}

std::string format_statistics() {
    registry &all = get_registry();
    std::vector<statistics_source> sources;
    std::string text;
    {
        std::lock_guard<std::mutex> guard(all.mutex);
        size_t width = 5;
        for (const auto &[name, count] : all.counters) {
            width = std::max(width, std::get<1>(name).size());
        }
        char line[512];
        if (!all.counters.empty()) {
            std::snprintf(line, sizeof(line), "%-6s %-*s %10s %16s  %s\n", "what",
                          static_cast<int>(width), "shape", "messages", "bytes", "path (why)");
            text += line;
        }
        for (const auto &[name, count] : all.counters) {
            const auto &[operation, shape, path, why] = name;
            std::snprintf(line, sizeof(line), "%-6s %-*s %10" PRIu64 " %16" PRIu64 "  %s (%s)\n",
                          operation.c_str(), static_cast<int>(width), shape.c_str(), count.messages,
                          count.bytes, path.c_str(), why.c_str());
            text += line;
        }
        sources = all.sources;
    }
    for (statistics_source source : sources) {
        std::string line = source();
        if (!line.empty()) {
            text += line + '\n';
        }
    }
    return text.empty() ? text
                        : "cuda_nc statistics of process " + std::to_string(getpid()) + '\n' + text;
}

}  // namespace cuda_nc
