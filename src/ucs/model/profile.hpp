// The profile of a machine: how long its processors take to move bytes, measured by `nc_perftest
// tune` or usual for GPUs of their generation.
//
// Times are microseconds for a MiB of packed bytes, without the start of a call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ucs/gpu/kernel_rules.hpp"
#include "ucs/gpu/device.hpp"

namespace cuda_nc::model {

// Kinds of layouts by what costs a kernel, or the host executor, time.
enum class family : uint8_t {
    strided,     // blocks of one length, gaps of about that length
    sparse,      // blocks of one length, far from each other
    listed,      // blocks of one length in random order
    uneven,      // blocks of many lengths
    transposed,  // elements that lie together where packed ones do not
    pinned       // strided, but the packed side is pinned host memory
};
constexpr unsigned num_families = 6;
const char *name_of(family which) noexcept;

struct figure {
    family what = family::strided;
    gpu::direction dir = gpu::direction::pack;  // or unpack
    uint8_t align_log2 = 0;                     // what divides all addresses of both sides, <= 4
    uint32_t block = 0;                         // bytes, the mean where lengths vary
    double near = 0;                            // us for a MiB while all bytes fit in the cache
    double far = 0;                             // ... when they are a multiple of it
};

// Of one processor: a GPU, or one thread of the host.
struct moving {
    double call = 0;          // us that each of many calls after each other costs at least
    uint64_t cache_size = 0;  // bytes that `near` figures are good for
    double near_copy = 0, far_copy = 0;  // us for a MiB of a plain copy
    std::vector<figure> figures;
};

struct gpu_profile {
    std::string name, bus_id;
    bool measured = false;
    double completion = 0;       // us from a call to its end seen by the CPU, few bytes
    double copy_completion = 0;  // the same for a copy between GPU and pinned memory
    double down = 0, up = 0;     // us for a MiB: copies to, and from, pinned host memory
    moving moves;
    gpu::kernel_rules rules;  // `moves` was measured with them
};

// From the memory of one GPU to that of another, by the copy engine.
struct link_profile {
    std::string from, to;  // bus ids
    double copy = 0;       // us for a MiB
};

struct machine_profile {
    std::string host, backend, date;
    bool measured = false;  // the host's figures are
    moving host_moves;
    std::vector<gpu_profile> gpus;
    std::vector<link_profile> links;
};

// Usual figures of a GPU of this generation and name.
gpu_profile default_gpu(const gpu::device_properties &properties);
moving default_host();
// Of a link between two such GPUs where they reach each other.
double default_link(const gpu::device_properties &properties) noexcept;
// Of the fastest link from the GPU of that bus id, if one was measured.
std::optional<double> fastest_link(const machine_profile &of, const std::string &bus_id) noexcept;

// us for a MiB of packed bytes, interpolated between the figures; `working_set`: all bytes touched.
double rate(const moving &by, family what, gpu::direction dir, unsigned align_log2, double block,
            double working_set) noexcept;
double copy_rate(const moving &by, double working_set) noexcept;

}  // namespace cuda_nc::model
