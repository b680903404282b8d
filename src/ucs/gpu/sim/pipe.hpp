// One side of a pipe on a simulated GPU: it spins, loses patience, leaves and resumes as a kernel
// does.
#pragma once

#include <functional>

#include "ucs/gpu/device.hpp"
#include "ucs/gpu/sim/address_space.hpp"
#include "ucs/gpu/sim/random.hpp"

namespace cuda_nc::gpu::sim {

// Runs until all is moved, the message is aborted, or patience is lost; `pause` is called while
// there is nothing to do. UCS_ERR_IO_ERROR, logged, at the first access that the device could not
// make. Throws std::bad_alloc.
ucs_status_t execute(const pipe_work &work, int ordinal, const address_space &space,
                     random_source &random, const std::function<void()> &pause);

}  // namespace cuda_nc::gpu::sim
