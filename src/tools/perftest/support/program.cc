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

// Opens standard descriptors that the caller closed, for reading alone, so that writing there still
// fails. A socket or a file that we open later would take their place and get what we print.
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

void print_error(const char *name, const std::string &what) noexcept {
    std::fprintf(stderr, "%s: %s\n", name, what.c_str());
}

int finish_output(const char *name, int status) {
    errno = 0;
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) {
        return std::ferror(stderr) == 0 || status != 0 ? status : 1;
    }
    print_error(name, std::string("what was printed could not be written") +
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
            print_error(name, failure.what());
        }
    } catch (const std::exception &failure) {
        print_error(name, failure.what());
    }
    return finish_output(name, status);
}

}  // namespace cuda_nc::tools
