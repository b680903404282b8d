// Executes sides of pipes on a simulated GPU. As kernels do, they wait, leave after `patience_us`
// without progress, and resume.
#pragma once

#include <functional>
#include <vector>

#include "ucs/gpu/device.hpp"
#include "ucs/backend/sim/address_space.hpp"
#include "ucs/backend/sim/random.hpp"

namespace cuda_nc::gpu::sim {

// Runs each side until all is moved, its message is aborted, or its patience has ended; calls
// `pause` while none can move a chunk. UCS_ERR_IO_ERROR, logged, at the first access that the
// device could not make. Throws std::bad_alloc.
ucs_status_t execute(const std::vector<pipe_work> &sides, int ordinal, const address_space &space,
                     random_source &random, const std::function<void()> &pause);

}  // namespace cuda_nc::gpu::sim
