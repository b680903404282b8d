// Figures of GPUs that were not measured: those of an H200, scaled by memory bandwidth.
#include <unistd.h>

#include <cstring>

#include "ucs/model/profile.hpp"

namespace cuda_nc::model {
namespace {

constexpr auto pack = gpu::direction::pack, unpack = gpu::direction::unpack;

// bench/results/2026-11-21-h200-nc_perftest.md and 2026-11-22-h200-blocks.md, as us for a MiB; its
// plain copy takes:
constexpr double h200_near_copy = 0.31, h200_far_copy = 0.494, h200_call = 2.1;

struct both_directions {
    family what;
    uint8_t align_log2;
    uint32_t block;
    double pack_near, pack_far, unpack_near, unpack_far;
};

const both_directions h200[] = {
    {family::strided, 3, 8, 0.45, 0.72, 0.70, 1.20},
    {family::strided, 3, 64, 0.33, 0.51, 0.37, 0.58},
    {family::strided, 3, 256, 0.34, 0.49, 0.34, 0.50},
    {family::strided, 3, 4096, 0.26, 0.496, 0.26, 0.503},
    {family::strided, 2, 4, 0.80, 1.20, 1.20, 2.00},
    {family::strided, 2, 12, 0.54, 0.75, 0.58, 0.95},
    {family::strided, 2, 256, 0.40, 0.55, 0.45, 0.65},
    {family::strided, 0, 12, 0.64, 0.85, 0.84, 1.20},
    {family::strided, 0, 17, 0.59, 0.80, 0.81, 1.20},
    {family::strided, 0, 64, 0.68, 0.85, 1.15, 1.40},
    {family::strided, 0, 4096, 0.45, 0.55, 0.60, 0.70},
    {family::sparse, 3, 8, 2.30, 3.66, 3.40, 8.19},
    {family::sparse, 3, 64, 0.40, 0.60, 0.60, 1.10},
    {family::listed, 3, 8, 1.05, 2.20, 1.82, 3.60},
    {family::listed, 3, 64, 0.45, 0.70, 0.55, 0.87},
    {family::listed, 3, 1024, 0.36, 0.508, 0.38, 0.533},
    {family::listed, 0, 12, 1.40, 2.60, 2.20, 4.00},
    {family::listed, 0, 1000, 0.60, 0.75, 0.75, 1.00},
    {family::uneven, 3, 64, 0.95, 0.92, 1.60, 1.87},
    {family::uneven, 3, 512, 0.43, 0.61, 0.43, 0.83},
    {family::uneven, 3, 2048, 0.40, 0.56, 0.36, 0.60},
    {family::uneven, 3, 8192, 0.455, 0.57, 0.445, 0.62},
    {family::uneven, 0, 64, 1.50, 2.00, 2.20, 2.80},
    {family::uneven, 0, 2048, 0.58, 0.75, 0.72, 0.95},
    {family::transposed, 3, 8, 0.30, 0.509, 0.29, 0.509},
    {family::transposed, 2, 4, 0.40, 0.60, 0.40, 0.60},
};

struct generation {
    unsigned major, minor;
    const char *name;  // a part of the GPU's, "": any
    double far_copy;   // us for a MiB, device to device
    double near_copy;
    double bus;   // us for a MiB, pinned host memory
    double link;  // us for a MiB, to a neighbour
};

// Newest first; a GPU has the figures of the first entry that is not newer than itself.
const generation generations[] = {
    {10, 0, "", 0.30, 0.22, 19.2, 1.4}, {9, 0, "H200", 0.494, 0.31, 19.2, 2.7},
    {9, 0, "", 0.695, 0.42, 19.2, 2.7}, {8, 0, "", 1.35, 0.85, 42, 4.2},
    {7, 0, "", 2.65, 2.2, 84, 22},
};

const generation &generation_of(const gpu::device_properties &p) noexcept {
    // A simulated GPU has no version: it counts as the usual one.
    const unsigned major = p.compute_major != 0 ? p.compute_major : 9;
    for (const generation &one : generations) {
        if ((major > one.major || (major == one.major && p.compute_minor >= one.minor)) &&
            p.name.find(one.name) != std::string::npos) {
            return one;
        }
    }
    return generations[sizeof(generations) / sizeof(generations[0]) - 1];
}

// Kernels reach pinned memory at the bus's rate with whole words; with bytes or short words of
// scattered blocks the requests get too small for it.
void add_pinned(const generation &of, moving *by) {
    const both_directions bus[] = {
        {family::pinned, 0, 12, 3, 3, 3, 3},
        {family::pinned, 0, 32, 3, 3, 3, 3},
        {family::pinned, 0, 64, 1.05, 1.05, 1.08, 1.08},
        {family::pinned, 2, 4, 1.05, 1.05, 1.08, 1.08},
        {family::pinned, 3, 8, 1.05, 1.05, 1.08, 1.08},
    };
    for (const both_directions &one : bus) {
        by->figures.push_back({one.what, pack, one.align_log2, one.block, one.pack_near * of.bus,
                               one.pack_far * of.bus});
        by->figures.push_back({one.what, unpack, one.align_log2, one.block,
                               one.unpack_near * of.bus, one.unpack_far * of.bus});
    }
}

}  // namespace

gpu_profile default_gpu(const gpu::device_properties &properties) {
    const generation &of = generation_of(properties);
    gpu_profile made;
    made.name = properties.name;
    made.bus_id = properties.bus_id;
    made.completion = 9.9;
    made.copy_completion = 8.2;
    made.down = made.up = of.bus;
    made.moves.call = h200_call;
    made.moves.cache_size = properties.l2_size != 0 ? properties.l2_size : uint64_t{40} << 20;
    made.moves.near_copy = of.near_copy;
    made.moves.far_copy = of.far_copy;
    const double near = of.near_copy / h200_near_copy, far = of.far_copy / h200_far_copy;
    for (const both_directions &one : h200) {
        made.moves.figures.push_back(
            {one.what, pack, one.align_log2, one.block, one.pack_near * near, one.pack_far * far});
        made.moves.figures.push_back({one.what, unpack, one.align_log2, one.block,
                                      one.unpack_near * near, one.unpack_far * far});
    }
    add_pinned(of, &made.moves);
    return made;
}

double default_link(const gpu::device_properties &properties) noexcept {
    return generation_of(properties).link;
}

moving default_host() {
    // One thread of a server, from bench/results/2026-11-21-host-fragments.md.
    const both_directions usual[] = {
        {family::strided, 3, 8, 150, 280, 200, 360},  {family::strided, 3, 64, 80, 190, 100, 215},
        {family::strided, 3, 1024, 50, 145, 55, 200}, {family::strided, 3, 4096, 50, 100, 55, 120},
        {family::strided, 0, 12, 200, 280, 250, 380}, {family::strided, 0, 64, 80, 190, 100, 215},
        {family::sparse, 3, 8, 400, 1100, 500, 1400}, {family::sparse, 3, 64, 100, 300, 120, 350},
        {family::listed, 3, 8, 500, 1450, 600, 1650}, {family::listed, 3, 64, 120, 240, 150, 300},
        {family::listed, 3, 1024, 60, 110, 70, 110},  {family::uneven, 0, 64, 300, 500, 320, 530},
        {family::uneven, 0, 2048, 70, 150, 80, 180},
    };
    moving made;
    made.call = 0.05;
    const long cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
    made.cache_size = cache > 0 ? static_cast<uint64_t>(cache) : uint64_t{1} << 20;
    made.near_copy = 45;
    made.far_copy = 110;
    for (const both_directions &one : usual) {
        made.figures.push_back(
            {one.what, pack, one.align_log2, one.block, one.pack_near, one.pack_far});
        made.figures.push_back(
            {one.what, unpack, one.align_log2, one.block, one.unpack_near, one.unpack_far});
    }
    return made;
}

}  // namespace cuda_nc::model
