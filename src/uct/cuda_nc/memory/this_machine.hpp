// Which machine, as long as it runs.
#pragma once

#include <cstdint>

namespace cuda_nc::uct {

// A hash of its name and boot. Addresses of processes and files mean the same to two sides only
// where it is the same.
uint32_t this_machine() noexcept;

}  // namespace cuda_nc::uct
