// Shows on standard error how far a long measurement is.
#pragma once

#include <cstddef>
#include <string>

namespace cuda_nc::tools {

// One line that each text replaces. Shows nothing where standard error is not a terminal.
class progress_line {
  public:
    progress_line();
    // For tests: as if standard error were a terminal, or not.
    explicit progress_line(bool is_terminal) noexcept : terminal_(is_terminal) {}

    bool is_terminal() const noexcept { return terminal_; }
    // Cut off where it would not fit on a line.
    void show(const std::string &text);
    // Before anything else is printed there.
    void clear();

  private:
    const bool terminal_;
    bool shown_ = false;
};

// "3/48 LAYOUT" while the third of 48 is measured.
class progress_counter {
  public:
    explicit progress_counter(size_t total) : total_(total) {}
    progress_counter(size_t total, progress_line line) : total_(total), line_(line) {}

    void begin(const std::string &layout);
    void clear() { line_.clear(); }

  private:
    const size_t total_;
    size_t begun_ = 0;
    progress_line line_;
};

}  // namespace cuda_nc::tools
