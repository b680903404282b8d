// A periodic 3-D grid of ranks, each with a box of n^3 elements of 8 bytes and a halo around it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cuda_nc::tools {

using triple = std::array<int, 3>;  // the last varies fastest in memory

// As cubic as `ranks` allows: 12 -> {3, 2, 2}.
triple divide_ranks(int ranks);

class halo_grid {
  public:
    halo_grid(int ranks, int edge, int width)
        : ranks_(divide_ranks(ranks)), edge_(edge), width_(width) {}

    const triple &ranks() const noexcept { return ranks_; }
    int across() const noexcept { return edge_ + 2 * width_; }  // elements, halo included
    size_t bytes() const noexcept;                              // of a box with its halo

    triple place_of(int rank) const noexcept;
    int neighbour(int rank, const triple &direction) const noexcept;

    // The 6 faces, or the 26 directions of faces, edges and corners.
    static std::vector<triple> directions(int neighbours);

    // What is sent there, and what comes from there, as parse_layout takes it.
    std::string sent(const triple &direction) const;
    std::string received(const triple &direction) const;

    // The element at `at` (halo included) of `rank`, as its owner has it.
    uint64_t value(int rank, const triple &at) const noexcept;
    // The direction of the part of the halo that `at` lies in; {0, 0, 0}: the box itself.
    triple part_of(const triple &at) const noexcept;

  private:
    std::string region(const triple &starts, const triple &direction) const;

    triple ranks_;
    int edge_, width_;
};

}  // namespace cuda_nc::tools
