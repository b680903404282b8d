// The last resort against a hang inside UCX, an MPI or a driver.
#pragma once

#include <string>

namespace cuda_nc::tools {

// From now on `what` has so many seconds: then the process says so and ends with status 124. Uses
// SIGALRM. Starts again at each call; 0 s: no more.
void watch_for(double seconds, const std::string &what);

}  // namespace cuda_nc::tools
