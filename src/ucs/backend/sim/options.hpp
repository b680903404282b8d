// How a simulated GPU behaves, and the platform made of such GPUs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "ucs/gpu/device.hpp"

namespace cuda_nc::gpu::sim {

struct options {
    unsigned devices = 2;
    size_t memory = size_t(1) << 30;  // bytes of each device
    unsigned delay = 50;              // microseconds: upper bound of an operation's random delay
    uint64_t seed = 1;
    std::string faults;        // see README.md
    unsigned mover_idle = 50;  // microseconds that a mover waits for an order; 0: no mover
    unsigned mover_away = 20;  // microseconds that it waits while the pulse stands still
    bool mover_always = true;  // it takes orders where no kernel is there, too
};

// Null, with a sentence in *why_p, where memory cannot be reserved or the options are wrong. Tests
// may make several; objects of a platform must be destroyed before it.
std::unique_ptr<platform> make_platform(const options &how, std::string *why_p);

// From now on query() of `on`, a simulated platform, calls these bytes of host memory `unknown`.
// Throws std::bad_alloc.
void add_unknown(platform &on, void *address, size_t size);

// Managed memory of that GPU of `on`, a simulated platform: every GPU and the CPU may touch it, and
// other processes cannot be given it. Failures are those of device::allocate(), and count as such.
ucs_status_t allocate_managed(platform &on, int ordinal, size_t size,
                              std::unique_ptr<memory> *memory_p) noexcept;

// From now on other processes can be given its allocation at `address` so; `piece`: bytes of the
// pieces that it is made of, where by_descriptor.
void set_sharing(platform &on, const void *address, sharing how, size_t piece = 0) noexcept;

// Copies before it returns, as cudaMemcpy does, not ordered with any stream. Source and destination
// are host memory or memory of `on`, a simulated platform. Aborts the process, with a message,
// where either leaves its allocation.
void copy_now(platform &on, void *destination, const void *source, size_t length) noexcept;

}  // namespace cuda_nc::gpu::sim
