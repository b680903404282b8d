#include "tools/perftest/message/halo_grid.hpp"

#include <cstdlib>

#include <fmt/core.h>

namespace cuda_nc::tools {
namespace {

// Not the mixing of noise(): neighbouring elements differ in every byte.
uint64_t mixed(uint64_t value) noexcept {
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

}  // namespace

triple divide_ranks(int ranks) {
    triple best = {ranks, 1, 1};
    for (int x = 1; x <= ranks; ++x) {
        for (int y = 1; y <= x; ++y) {
            if (ranks % (x * y) != 0 || ranks / (x * y) > y) {
                continue;
            }
            const int z = ranks / (x * y);
            if (x + y + z < best[0] + best[1] + best[2]) {
                best = {x, y, z};
            }
        }
    }
    return best;
}

size_t halo_grid::bytes() const noexcept {
    const auto n = static_cast<size_t>(across());
    return n * n * n * 8;
}

triple halo_grid::place_of(int rank) const noexcept {
    return {rank / (ranks_[1] * ranks_[2]), rank / ranks_[2] % ranks_[1], rank % ranks_[2]};
}

int halo_grid::neighbour(int rank, const triple &direction) const noexcept {
    triple place = place_of(rank);
    for (size_t d = 0; d < 3; ++d) {
        place[d] = (place[d] + direction[d] + ranks_[d]) % ranks_[d];
    }
    return (place[0] * ranks_[1] + place[1]) * ranks_[2] + place[2];
}

std::vector<triple> halo_grid::directions(int neighbours) {
    std::vector<triple> all;
    for (int x = -1; x <= 1; ++x) {
        for (int y = -1; y <= 1; ++y) {
            for (int z = -1; z <= 1; ++z) {
                const int steps = std::abs(x) + std::abs(y) + std::abs(z);
                if (steps == 1 || (steps > 1 && neighbours == 26)) {
                    all.push_back({x, y, z});
                }
            }
        }
    }
    return all;
}

std::string halo_grid::region(const triple &starts, const triple &direction) const {
    triple sizes;
    for (size_t d = 0; d < 3; ++d) {
        sizes[d] = direction[d] == 0 ? edge_ : width_;
    }
    return fmt::format("subarray:8,{0}x{0}x{0},{1}x{2}x{3},{4}x{5}x{6}", across(), sizes[0],
                       sizes[1], sizes[2], starts[0], starts[1], starts[2]);
}

std::string halo_grid::sent(const triple &direction) const {
    triple starts;
    for (size_t d = 0; d < 3; ++d) {
        starts[d] = direction[d] == 1 ? edge_ : width_;
    }
    return region(starts, direction);
}

std::string halo_grid::received(const triple &direction) const {
    triple starts;
    for (size_t d = 0; d < 3; ++d) {
        starts[d] = direction[d] == 1 ? edge_ + width_ : direction[d] == 0 ? width_ : 0;
    }
    return region(starts, direction);
}

uint64_t halo_grid::value(int rank, const triple &at) const noexcept {
    const triple place = place_of(rank);
    uint64_t whole = 1;
    for (size_t d = 0; d < 3; ++d) {
        const int around = ranks_[d] * edge_;
        const int global = (place[d] * edge_ + at[d] - width_ + around) % around;
        whole = whole * static_cast<uint64_t>(around) + static_cast<uint64_t>(global);
    }
    return mixed(whole);
}

triple halo_grid::part_of(const triple &at) const noexcept {
    triple part;
    for (size_t d = 0; d < 3; ++d) {
        part[d] = at[d] < width_ ? -1 : at[d] >= width_ + edge_ ? 1 : 0;
    }
    return part;
}

}  // namespace cuda_nc::tools
