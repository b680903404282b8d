// The host benchmarks' layouts (host_layouts in src/tools/perftest/layouts/tables.hpp), and memory
// to move them in.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tools/perftest/layouts/catalogue.hpp"
#include "tools/perftest/layouts/sizes.hpp"
#include "tools/perftest/layouts/tables.hpp"
#include "tools/perftest/support/sectors.hpp"
#include "ucs/layout/layout.hpp"

namespace cuda_nc::bench {

struct host_layout {
    std::string name;
    layout_ref what;
};

// Each with about `bytes` packed bytes, or with the size that it has. Throws tools::run_error.
inline std::vector<host_layout> make_host_layouts(uint64_t bytes) {
    std::vector<host_layout> all;
    auto make = [&](const tools::layout_row &row) {
        return tools::layout_of(tools::fit_layout(row.text, bytes).value().text);
    };
    for (const tools::layout_row &row : tools::host_layouts) {
        all.push_back({row.name, make(row)});
    }
    for (const tools::layout_row &row : tools::ascending_host_layouts) {
        const layout_ref what = make(row);
        all.push_back({row.name, layout_ref(what, &what->in_memory_order())});
    }
    return all;
}

// Bytes of the cache lines that a layout touches in a buffer aligned to lines.
inline uint64_t touched_lines(const layout &what) {
    return tools::count_sectors(what, 0, tools::host_sector).value().touched * tools::host_sector;
}

struct free_memory {
    void operator()(char *memory) const { std::free(memory); }
};
using memory = std::unique_ptr<char, free_memory>;

// Page-aligned, written once.
inline memory allocate(uint64_t bytes) {
    const size_t rounded = (static_cast<size_t>(bytes) + 8191) / 4096 * 4096;
    memory result(static_cast<char *>(std::aligned_alloc(4096, rounded)));
    for (size_t i = 0; i < rounded; ++i) {
        result.get()[i] = static_cast<char>(i * 2654435761u >> 13);
    }
    return result;
}

// What a layout is measured against: reads at least `read` bytes and writes at least `written`.
inline void copy_lines(char *target, const char *source, uint64_t read, uint64_t written) {
    const uint64_t part = std::min(read, written);
    for (uint64_t done = 0; done < read || done < written; done += part) {
        const uint64_t from = done < read ? done : 0, to = done < written ? done : 0;
        const uint64_t left = read > written ? read - from : written - to;
        std::memcpy(target + to, source + from, std::min(left, part));
    }
}

}  // namespace cuda_nc::bench
