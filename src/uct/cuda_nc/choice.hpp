// Whether this process has the transport cuda_nc, and why.
#pragma once

#include <string>
#include <vector>

namespace cuda_nc::uct {

struct transport_choice {
    bool on;
    bool asked;                         // somebody named it: where it cannot be, a warning says so
    std::string why;                    // half a sentence
    std::vector<std::string> carriers;  // of UCX_CUDA_NC_CARRIERS, those that UCX_TLS leaves us
};

// By the settings, UCX_TLS and a look for GPUs that loads nothing.
transport_choice choose_transport();

}  // namespace cuda_nc::uct
