// What ends a measurement or the program: a sentence for the user.
#pragma once

#include <stdexcept>

namespace cuda_nc::tools {

class run_error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

}  // namespace cuda_nc::tools
