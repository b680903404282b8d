// The time, for measuring.
#pragma once

#include <chrono>

namespace cuda_nc::tools {

// Seconds of a steady clock.
inline double seconds_now() noexcept {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

}  // namespace cuda_nc::tools
