#include "uct/cuda_nc/pipe_shape.hpp"

#include <algorithm>

namespace cuda_nc::uct {

// Measured on two H200 (bench/results, pipes): a message is best cut once for each lane, in chunks
// of 4 KiB or more and for 128 lanes at most. Longer chunks than 64 KiB fill the ring too late; a
// longer message goes round, and with two slots for each lane that is as fast as with four.
gpu::pipe_geometry choose_geometry(uint64_t bytes, unsigned lanes, uint64_t room) noexcept {
    constexpr uint64_t least_chunk = 4 << 10, most_chunk = 64 << 10;
    constexpr unsigned most_lanes = 128;
    lanes = std::min(std::max(lanes, 1u), most_lanes);
    auto parts = [](uint64_t all, uint64_t part) { return (all + part - 1) / part; };
    uint64_t rounds = parts(bytes, lanes * most_chunk);
    uint64_t chunk = parts(parts(bytes, lanes * rounds), least_chunk) * least_chunk;
    uint64_t chunks = parts(bytes, chunk);
    gpu::pipe_geometry g;
    g.lanes = static_cast<uint32_t>(std::min<uint64_t>(lanes, chunks));
    auto depth_of = [&] { return chunks > g.lanes ? 2u : 1u; };
    for (;;) {
        g.chunk_size = static_cast<uint32_t>(chunk);
        g.depth = depth_of();
        if (g.ring_size() <= room) {
            return g;
        }
        if (chunk > least_chunk) {
            chunk /= 2;
        } else if (g.lanes > 1) {
            g.lanes /= 2;
        } else {
            return {};
        }
        chunks = parts(bytes, chunk);
    }
}

}  // namespace cuda_nc::uct
