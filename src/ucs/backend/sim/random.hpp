// A small, fast source of random numbers with a seed (splitmix64).
#pragma once

#include <cstdint>

namespace cuda_nc::gpu::sim {

class random_source {
  public:
    explicit random_source(uint64_t seed) noexcept : state_(seed) {}

    uint64_t next() noexcept {
        uint64_t z = state_ += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    // 0 to limit, both inclusive.
    uint64_t up_to(uint64_t limit) noexcept {
        return limit == UINT64_MAX ? next() : next() % (limit + 1);
    }

  private:
    uint64_t state_;
};

}  // namespace cuda_nc::gpu::sim
