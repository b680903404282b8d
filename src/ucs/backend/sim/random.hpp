// Random numbers with a seed (splitmix64).
#pragma once

#include <cstdint>

#include "ucs/base/bits.hpp"

namespace cuda_nc::gpu::sim {

class random_source {
  public:
    explicit random_source(uint64_t seed) noexcept : state_(seed) {}

    uint64_t next() noexcept {
        state_ += 0x9e3779b97f4a7c15u;
        return mix64(state_);
    }
    // 0 to limit, both inclusive.
    uint64_t up_to(uint64_t limit) noexcept {
        return limit == UINT64_MAX ? next() : next() % (limit + 1);
    }

  private:
    uint64_t state_;
};

}  // namespace cuda_nc::gpu::sim
