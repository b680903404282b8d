#include "tools/perftest/support/program.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <system_error>

namespace cuda_nc::tools {
namespace {

// Else a socket or a file of ours would take the place of a closed descriptor, and get what we
// print. For reading only: writing there still fails.
void fill_closed_descriptors() {
    int last;
    do {
        last = open("/dev/null", O_RDONLY | O_CLOEXEC);
    } while (last >= 0 && last <= STDERR_FILENO);
    if (last >= 0) {
        close(last);
    }
}

}  // namespace

void complain(const char *name, const std::string &what) noexcept {
    std::fprintf(stderr, "%s: %s\n", name, what.c_str());
}

int finish_output(const char *name, int status) {
    errno = 0;
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) {
        return std::ferror(stderr) == 0 || status != 0 ? status : 1;
    }
    complain(name, std::string("what was printed could not be written") +
                       (errno != 0 ? std::string(": ") + std::strerror(errno) : ""));
    return status != 0 ? status : 1;
}

int run_program(const char *name, const std::function<int()> &work) {
    fill_closed_descriptors();
    int status = 1;
    try {
        status = work();
    } catch (const std::system_error &failure) {
        if (std::ferror(stdout) == 0) {  // else finish_output() says it
            complain(name, failure.what());
        }
    } catch (const std::exception &failure) {
        complain(name, failure.what());
    }
    return finish_output(name, status);
}

}  // namespace cuda_nc::tools
