// Executes a launch on a simulated GPU.
#pragma once

#include <functional>

#include "ucs/gpu/device.hpp"
#include "ucs/backend/sim/address_space.hpp"
#include "ucs/backend/sim/random.hpp"

namespace cuda_nc::gpu::sim {

// Moves the bytes of `work` on device `ordinal`, in pieces in random order, calling `pause` between
// them. UCS_ERR_IO_ERROR, logged, at the first access that the device could not make; bytes moved
// until then stay moved.
ucs_status_t execute(const transfer &work, int ordinal, const address_space &space,
                     random_source &random, const std::function<void()> &pause) noexcept;

// The same for the pairs of `list`. UCS_ERR_NO_MEMORY: no host memory for their order.
ucs_status_t execute(const pair_list &list, int ordinal, const address_space &space,
                     random_source &random, const std::function<void()> &pause) noexcept;

}  // namespace cuda_nc::gpu::sim
