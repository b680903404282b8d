// Whether this process may see a GPU: a look at files and settings, which loads nothing.
#pragma once

#include <string>

namespace cuda_nc::gpu {

struct presence {
    bool possible;
    std::string why;  // half a sentence
};

// `root` stands before the paths that are looked at: for tests.
presence look_for_gpus(const std::string &root = "");

}  // namespace cuda_nc::gpu
