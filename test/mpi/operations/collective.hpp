// What collective operations move, packed.
#pragma once

#include <memory>
#include <vector>

#include "operations/exchange.hpp"

namespace mpi_test {

// The packed bytes of all ranks' buffers of one type map, in the order of the ranks.
inline std::vector<char> all_content(harness &t, const type_map &map, uint64_t number) {
    std::vector<char> all;
    for (int rank = 0; rank < t.ranks(); ++rank) {
        std::vector<char> one = packed_content(map, key_of(rank, number));
        all.insert(all.end(), one.begin(), one.end());
    }
    return all;
}

// The i-th of `n` equal parts.
inline std::vector<char> part_of(const std::vector<char> &all, int i, int n) {
    auto length = static_cast<ptrdiff_t>(all.size()) / n;
    return {all.begin() + i * length, all.begin() + (i + 1) * length};
}

}  // namespace mpi_test
