#include "tools/perftest/support/results.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>

#include <fmt/core.h>

#include "tools/perftest/support/run_error.hpp"

namespace cuda_nc::tools {

nlohmann::json times_of(const summary &s) {
    return {{"min_us", s.least * 1e6},
            {"p5_us", s.p5 * 1e6},
            {"median_us", s.median * 1e6},
            {"p95_us", s.p95 * 1e6},
            {"p99_us", s.p99 * 1e6},
            {"max_us", s.most * 1e6},
            {"median_low_us", s.median_low * 1e6},
            {"median_high_us", s.median_high * 1e6},
            {"samples", s.samples}};
}

std::string quoted(const std::string &text) {
    std::string result = "\"";
    for (char c : text) {
        result += c;
        if (c == '"') {
            result += c;
        }
    }
    return result + '"';
}

std::string now() {
    char text[32];
    std::time_t time = std::time(nullptr);
    std::tm parts;
    gmtime_r(&time, &parts);
    std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
    return text;
}

void check_writable(const std::string &path) {
    if (path.empty()) {
        return;
    }
    const int made = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    struct stat there;
    int why = errno;
    if (made >= 0) {
        close(made);
        unlink(path.c_str());
        return;
    }
    if (why == EEXIST) {  // not opened: a pipe's reader would take its closing for the end
        const bool is_known = stat(path.c_str(), &there) == 0;
        why = is_known && S_ISDIR(there.st_mode)            ? EISDIR
              : is_known && access(path.c_str(), W_OK) != 0 ? errno
                                                            : 0;
    }
    if (why != 0) {
        throw run_error(fmt::format("{} cannot be written: {}", path, std::strerror(why)));
    }
}

void save(const std::string &path, const std::string &text) {
    errno = 0;
    std::ofstream file(path);
    file << text;
    file.close();
    if (!file) {
        throw run_error(fmt::format("{} could not be written{}{}", path, errno != 0 ? ": " : "",
                                    errno != 0 ? std::strerror(errno) : ""));
    }
}

}  // namespace cuda_nc::tools
