// A benchmark case folded into a layout, with memory to move it.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "bench_cases.hpp"
#include "ucs/layout/layout.hpp"

namespace cuda_nc::bench {

inline layout_ref fold(const bench_case &one) {
    layout_builder builder;
    for (const piece &p : one.list) {
        builder.append(p.displacement, p.length);
    }
    layout_ref folded = builder.finish();
    for (const layout_dim &dim : one.dims) {
        folded = folded->repeat(dim.count, dim.stride);
    }
    return folded;
}

// Bytes of the cache lines that a layout touches in a buffer aligned to lines.
inline uint64_t touched_bytes(const layout &folded) {
    std::vector<bool> seen(static_cast<size_t>(folded.upper_bound()) / 64 + 1);
    uint64_t lines = 0;
    layout_cursor cursor(folded, 0);
    for (block span = cursor.next(UINT64_MAX); span.length != 0; span = cursor.next(UINT64_MAX)) {
        const uint64_t first = static_cast<uint64_t>(span.displacement);
        for (uint64_t line = first / 64; line <= (first + span.length - 1) / 64; ++line) {
            lines += !seen[line];
            seen[line] = true;
        }
    }
    return lines * 64;
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

// What a layout is measured against: reads `read` bytes, writes `written`, both at least.
inline void copy_lines(char *target, const char *source, uint64_t read, uint64_t written) {
    const uint64_t part = read < written ? read : written;
    for (uint64_t done = 0; done < read || done < written; done += part) {
        const uint64_t from = done < read ? done : 0, to = done < written ? done : 0;
        const uint64_t left = read > written ? read - from : written - to;
        std::memcpy(target + to, source + from, left < part ? left : part);
    }
}

}  // namespace cuda_nc::bench
