// nc_info --explain: what the engine chooses for a layout, and how long it should take.
#pragma once

#include <string>
#include <vector>

namespace cuda_nc::tools {

// LAYOUT (name, text form or family) and, where given, the message's size. Throws run_error.
void explain(const std::vector<std::string> &arguments);

}  // namespace cuda_nc::tools
