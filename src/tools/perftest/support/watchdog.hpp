// The last resort against a hang inside UCX, an MPI or a driver.
#pragma once

#include <string>

namespace cuda_nc::tools {

// Ends the process with status 124 and a message that names `what`, `seconds` from now. Each call
// replaces the last; 0 s switches it off. Uses SIGALRM.
void watch_for(double seconds, const std::string &what);

}  // namespace cuda_nc::tools
