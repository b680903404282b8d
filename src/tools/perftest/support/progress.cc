#include "tools/perftest/support/progress.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>

namespace cuda_nc::tools {
namespace {

constexpr int line_width = 78;  // a terminal's, at least, less what would make it go on

}  // namespace

progress_line::progress_line() : progress_line(isatty(STDERR_FILENO) != 0) {}

void progress_line::show(const std::string &text) {
    if (!terminal_) {
        return;
    }
    // The cursor goes back: warnings and errors begin there.
    fmt::print(stderr, "\r{:<{}.{}}\r", text, line_width, line_width);
    std::fflush(stderr);
    shown_ = true;
}

void progress_line::clear() {
    if (shown_) {
        fmt::print(stderr, "\r{:<{}}\r", "", line_width);
        std::fflush(stderr);
        shown_ = false;
    }
}

void progress_counter::begin(const std::string &layout) {
    line_.show(fmt::format("{}/{} {}", ++begun_, total_, layout));
}

}  // namespace cuda_nc::tools
