// What every program does around its work.
#pragma once

#include <functional>
#include <string>

namespace cuda_nc::tools {

// Runs `work` and returns the program's exit status: that of `work`; 1, after one message "NAME:
// ...", where it threw, or where what it printed could not be written (a full disk, a closed
// descriptor).
int run_program(const char *name, const std::function<int()> &work);

// For programs that return otherwise: `status`, or 1 after one message where output was lost.
int finish_output(const char *name, int status);

// "NAME: WHAT" to standard error; never throws, as fmt::print does where nobody can read it.
void print_error(const char *name, const std::string &what) noexcept;

}  // namespace cuda_nc::tools
