// What a transfer must leave behind, found block by block and byte by byte: shares no code with the
// executors.
#pragma once

#include <string>
#include <vector>

#include "ucs/gpu/device.hpp"
#include "ucs/layout/layout.hpp"

namespace cuda_nc::tools {

// Random bytes, the same for the same seed.
std::vector<char> noise(size_t size, uint64_t seed);

// `source` and `target` before the transfer; a laid-out one begins at the layout's lower bound.
// Returns the target as it must be after it, gaps included.
std::vector<char> expected_target(const layout &what, gpu::direction dir,
                                  const std::vector<char> &source, const std::vector<char> &target);

// The first difference in words, or nothing.
std::string compare(const std::vector<char> &expected, const std::vector<char> &found);

}  // namespace cuda_nc::tools
