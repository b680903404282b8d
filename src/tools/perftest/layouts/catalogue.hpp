// Layouts by name, and the bars that the standard set is held against.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ucs/layout/layout.hpp"

namespace cuda_nc::tools {

// Time of an operation over that of a plain copy of the same bytes, at most.
struct bars {
    double pack = 0, unpack = 0;  // 0: none
};

struct named_layout {
    std::string name;
    std::string text;     // as parse_layout takes it, or a family (see sizes.hpp)
    size_t misalign = 0;  // bytes by which the laid-out buffer is off its alignment
    bars at_most;
};

// "standard" (the table of layouts that the kernels are judged by), "messages" (families: any
// size), "applications" or "small" (seconds anywhere); nothing where there is no such set.
const std::vector<named_layout> *find_set(const std::string &name);
std::vector<std::string> set_names();

// A name out of any set, or the text form of a layout.
std::optional<named_layout> find_layout(const std::string &name_or_text);

// The layout of a text form; throws run_error with what is wrong with it.
layout_ref layout_of(const std::string &text);

// Prints all of them to standard output, by set; returns 0, an exit status.
int list_layouts();

}  // namespace cuda_nc::tools
