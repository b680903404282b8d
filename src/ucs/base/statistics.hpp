// UCX_CUDA_NC_STATS=y: what happened to each kind of message, printed at exit.
#pragma once

#include <cstdint>
#include <string>

#include "ucs/base/settings.hpp"

namespace cuda_nc {

// Counts a message that has ended. `operation` ("send", "recv", "pack", "copy"), `shape` ("strided
// 8 B"), `path` ("host engine", "GPU zero-copy", "original") and `why` ("buffer in host memory")
// are short texts for people; equal texts are counted together. Thread safe.
void count_message_slow(const char *operation, const std::string &shape, const char *path,
                        const char *why, uint64_t bytes) noexcept;

inline bool statistics_enabled() noexcept {
    return config().stats;
}

// A line of text for the end of the report ("work lists: 12 hits, 3 misses"), asked for at exit;
// nothing where no statistics are wanted, and once where it is added several times.
using statistics_source = std::string (*)();
void add_statistics_source(statistics_source source) noexcept;

// The table as text; empty where nothing was counted.
std::string format_statistics();

}  // namespace cuda_nc
