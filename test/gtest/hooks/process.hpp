// Commands in processes of their own, and what they said.
#pragma once

#include <iosfwd>
#include <string>

namespace cuda_nc::hooks::test {

struct outcome {
    int status;          // exit code, or minus the signal
    std::string output;  // standard output and standard error as they came
    bool operator==(const outcome &other) const {
        return status == other.status && output == other.output;
    }
};
std::ostream &operator<<(std::ostream &to, const outcome &from);

// `environment` is a list "A=b C=d" for env; `command` is the shell's.
outcome run(const std::string &environment, const std::string &command);

}  // namespace cuda_nc::hooks::test
