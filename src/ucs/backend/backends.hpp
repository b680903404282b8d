// How platform.cc makes the backends.
#pragma once

#include <memory>
#include <string>

#include "ucs/gpu/device.hpp"

namespace cuda_nc::gpu {

// True in a child forked after the parent had looked for GPUs. Neither the driver's nor the
// simulator's state survives a fork: the child must not use, wait for or release anything of it.
bool forked() noexcept;

// Return null with one sentence in *why_p where they fail; never throw.
std::unique_ptr<platform> make_sim_platform(std::string *why_p) noexcept;
// Only with HAVE_CUDA. Not `used`: the platform has no devices, and calls GPU memory `unknown`.
std::unique_ptr<platform> make_cuda_platform(bool used, std::string *why_p) noexcept;

}  // namespace cuda_nc::gpu
