// Layouts of applications, from the parameters that their benchmarks publish.
#pragma once

#include <vector>

#include "tools/perftest/layouts/catalogue.hpp"

namespace cuda_nc::tools {

std::vector<named_layout> application_layouts();

}  // namespace cuda_nc::tools
