#include "tools/perftest/support/watchdog.hpp"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <mutex>

namespace cuda_nc::tools {
namespace {

char sentence[256];  // read by a signal handler, while no thread changes it
std::mutex changing;

void give_up(int) {
    const ssize_t ignored = write(STDERR_FILENO, sentence, std::strlen(sentence));
    static_cast<void>(ignored);
    _exit(124);
}

}  // namespace

void watch_for(double seconds, const std::string &what) {
    std::lock_guard<std::mutex> guard(changing);
    alarm(0);
    std::snprintf(sentence, sizeof(sentence), "nc_perftest: %.150s: not finished within %.0f s\n",
                  what.c_str(), seconds);
    std::signal(SIGALRM, give_up);
    alarm(static_cast<unsigned>(seconds));
}

}  // namespace cuda_nc::tools
