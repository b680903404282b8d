// A setting of ours while it lives.
#pragma once

#include <cstdlib>
#include <string>

#include "ucs/base/settings.hpp"

namespace cuda_nc::uct {

struct with_setting {
    with_setting(const char *name_, const std::string &value) : name(name_) {
        setenv(name, value.c_str(), 1);
        reload_config_for_test();
    }
    ~with_setting() {
        unsetenv(name);
        reload_config_for_test();
    }
    const char *name;
};

}  // namespace cuda_nc::uct
