#include "hooks/process.hpp"

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <ostream>

namespace cuda_nc::hooks::test {

std::ostream &operator<<(std::ostream &to, const outcome &from) {
    return to << "exit " << from.status << ": " << from.output;
}

// An instrumented program accepts that its runtime is not loaded first.
outcome run(const std::string &environment, const std::string &command) {
    std::string line = "env ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0 " + environment +
                       " " + command + " 2>&1";
    outcome result = {-1, ""};
    FILE *pipe = popen(line.c_str(), "r");
    if (pipe == nullptr) {
        return result;
    }
    std::array<char, 256> part;
    for (size_t n; (n = fread(part.data(), 1, part.size(), pipe)) != 0;) {
        result.output.append(part.data(), n);
    }
    int status = pclose(pipe);
    result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    return result;
}

}  // namespace cuda_nc::hooks::test
