// Whether this process has the transport cuda_nc, and why.
#pragma once

#include <string>
#include <vector>

// Exported: nc_info calls it.
#define CUDA_NC_FOR_TOOLS __attribute__((visibility("default")))

namespace cuda_nc::uct {

struct transport_choice {
    bool on;
    bool asked;                         // somebody named it: where it cannot be, a warning says so
    std::string why;                    // half a sentence
    std::vector<std::string> carriers;  // of UCX_CUDA_NC_CARRIERS, those that UCX_TLS leaves us
};

// By the settings, UCX_TLS and a look for GPUs that loads nothing.
CUDA_NC_FOR_TOOLS transport_choice choose_transport();

// What a UCX has to say to it.
struct transport_in_ucx {
    std::string refusal;                  // why it cannot be in this UCX; empty: it can
    std::vector<std::string> transports;  // of this UCX
};

// For the UCX around `in_ucx` (ucx_around() in ucs/base/ucx_instance.hpp), all of whose modules
// this loads.
CUDA_NC_FOR_TOOLS transport_in_ucx find_transport(const void *in_ucx);

}  // namespace cuda_nc::uct
