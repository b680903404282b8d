// A number that no other process is likely to have.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <random>

namespace cuda_nc {

// From the system's source of random numbers; where that fails, from the clock, the process id and
// an address.
inline uint64_t random_number() noexcept {
    try {
        std::random_device source;
        return uint64_t{source()} << 32 | source();
    } catch (...) {
        const auto now = std::chrono::system_clock::now().time_since_epoch().count();
        std::mt19937_64 mixed(static_cast<uint64_t>(now) ^ static_cast<uint64_t>(getpid()) << 40 ^
                              reinterpret_cast<uintptr_t>(&now));
        return mixed();
    }
}

}  // namespace cuda_nc
