// What platform.cc knows of the backends.
#pragma once

#include <memory>
#include <string>

#include "ucs/gpu/device.hpp"

namespace cuda_nc::gpu {

// True in a child that was forked after this process had looked for GPUs. Neither the driver's nor
// the simulator's state survives a fork: nothing of it may be used, waited for or released there.
bool forked() noexcept;

// Never return null without a sentence in *why_p, and never throw.
std::unique_ptr<platform> make_sim_platform(std::string *why_p) noexcept;
// Only with HAVE_CUDA. Not `used`: has no devices, and answers `unknown` for their memory.
std::unique_ptr<platform> make_cuda_platform(bool used, std::string *why_p) noexcept;

}  // namespace cuda_nc::gpu
