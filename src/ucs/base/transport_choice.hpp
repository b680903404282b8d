// Whether the transport cuda_nc is offered to UCX, and why: for the plugin, and for people who ask.
#pragma once

#include <string>

namespace cuda_nc {

struct transport_choice {
    bool is_on;
    std::string why;  // a sentence without its end
};

// By the settings, UCX_TLS, and whether this process may use a GPU. Touches no driver: a machine
// without a GPU pays a look at two files, once.
transport_choice choose_transport();

}  // namespace cuda_nc
