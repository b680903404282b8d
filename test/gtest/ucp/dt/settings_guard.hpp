// Settings for the length of a test.
#pragma once

#include <cstdlib>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>

#include "ucp/dt/request_state.hpp"
#include "ucs/base/settings.hpp"

namespace cuda_nc::test {

class settings_guard {
  public:
    // Names without prefix. Staging made under other settings is freed first.
    explicit settings_guard(std::initializer_list<std::pair<std::string, std::string>> values) {
        for (const auto &[name, value] : values) {
            std::string full = "UCX_CUDA_NC_" + name;
            const char *old = std::getenv(full.c_str());
            old_[full] = {old != nullptr, old != nullptr ? old : ""};
            setenv(full.c_str(), value.c_str(), 1);
        }
        apply();
    }

    ~settings_guard() {
        for (const auto &[name, value] : old_) {
            if (value.first) {
                setenv(name.c_str(), value.second.c_str(), 1);
            } else {
                unsetenv(name.c_str());
            }
        }
        apply();
    }

    settings_guard(const settings_guard &) = delete;
    settings_guard &operator=(const settings_guard &) = delete;

  private:
    static void apply() {
        dt::release_unused();
        reload_config_for_test();
    }

    std::map<std::string, std::pair<bool, std::string>> old_;
};

}  // namespace cuda_nc::test
