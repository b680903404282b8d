// Facts about a long list of blocks that are costly to find, kept with its tables for all layouts
// that share them.
#pragma once

#include <atomic>
#include <cstdint>

namespace cuda_nc {

struct list_proof {
    static constexpr uint64_t unknown = UINT64_MAX;

    // Bytes from the first to the last byte of the list in memory; 0: its blocks overlap, or may
    // overlap. Filled by the first user (exec/host/disjoint.hpp).
    std::atomic<uint64_t> disjoint_span{unknown};
};

}  // namespace cuda_nc
