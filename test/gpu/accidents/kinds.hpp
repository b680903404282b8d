// GPU memory by each of the driver's allocators.
#pragma once

#include <map>
#include <memory>

#include "accidents/driver.hpp"

namespace gpu_test {

// malloc, pool, shared-pool, virtual or managed; sim: of the simulated GPU.
std::unique_ptr<memory> open_kind(const std::string &kind, int rank);

}  // namespace gpu_test
