#include "uct/cuda_nc/pipe/shape.hpp"

#include <algorithm>
#include <cmath>

#include "ucs/base/bits.hpp"

namespace cuda_nc::uct {
// Measured on two H200 (bench/results, pipes and messages): a message is best cut once for each
// channel, in chunks of 4 KiB or more and for 128 channels at most. A longer message goes round,
// and with two slots for each channel that is as fast as with four. Each chunk costs its channel's
// block what it moves of 30 KiB in the meantime (a flag waits for the stores before it), and the
// first one fills the ring later the longer it is: the time is least for the square root of both.
// Few channels have long chunks, so that a ring is not larger than that of 128 channels and 64 KiB.
gpu::pipe_geometry choose_geometry(uint64_t bytes, unsigned channels, uint64_t room) noexcept {
    constexpr uint64_t least_chunk = 4 << 10, usual_chunk = 64 << 10;
    constexpr unsigned most_channels = 128;
    constexpr double flag_bytes = 30 << 10;
    channels = std::min(std::max(channels, 1u), most_channels);
    const double best = std::sqrt(static_cast<double>(bytes) / channels * flag_bytes);
    const uint64_t most_chunk = std::min(std::max(static_cast<uint64_t>(best), usual_chunk),
                                         usual_chunk * most_channels / channels);
    uint64_t rounds = divide_up(bytes, channels * most_chunk);
    uint64_t chunk = round_up(divide_up(bytes, channels * rounds), least_chunk);
    uint64_t chunks = divide_up(bytes, chunk);
    gpu::pipe_geometry g;
    g.channels = static_cast<uint32_t>(std::min<uint64_t>(channels, chunks));
    auto depth_of = [&] { return chunks > g.channels ? 2u : 1u; };
    for (;;) {
        g.chunk_size = static_cast<uint32_t>(chunk);
        g.depth = depth_of();
        if (g.ring_size() <= room) {
            return g;
        }
        if (chunk > least_chunk) {
            chunk = round_up(chunk / 2, least_chunk);
        } else if (g.channels > 1) {
            g.channels /= 2;
        } else {
            return {};
        }
        chunks = divide_up(bytes, chunk);
    }
}

// Measured on two H200 (bench/results, copies): a copy is begun 2 us sooner than a kernel and
// crosses the link 2.5 us sooner from a megabyte on; then a kernel moves 318 GB/s. A copy takes
// 0.345 ns for each 128 bytes, or less, of a row. Between processes it gets slower beyond some 16
// MiB, not with all rows.
bool copy_pays(const gpu::box &rows, const char *source, const char *target) noexcept {
    constexpr double of_piece = 0.345e-3, kernel_rate = 318e3, sooner = 2, crossing = 2.5;
    constexpr uint64_t piece = 128, longest = uint64_t{32} << 20;
    auto places = [](const char *base, const gpu::box::side &side) {
        return (reinterpret_cast<uintptr_t>(base) + static_cast<uintptr_t>(side.displacement)) |
               side.pitch;
    };
    const bool aligned = (places(source, rows.source) | places(target, rows.target)) % piece == 0;
    const uint64_t one_more = aligned || rows.width <= piece / 2 ? 0 : 1;
    const auto bytes = static_cast<double>(rows.all_rows() * rows.width);
    const auto pieces =
        static_cast<double>(rows.all_rows() * (divide_up(rows.width, piece) + one_more));
    return bytes <= longest &&
           pieces * of_piece <=
               sooner + crossing * std::min(bytes / (1 << 20), 1.0) + bytes / kernel_rate;
}

gpu::pipe_geometry copy_geometry() noexcept {
    gpu::pipe_geometry g;
    g.channels = g.depth = 1;
    g.chunk_size = gpu::max_pull_chunk;
    return g;
}

}  // namespace cuda_nc::uct
