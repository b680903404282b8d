// The text form of a layout, for tools and tests.
// layout_forms() and the manual describe it. Sizes take the suffixes K, M and G (powers of 1024).
#pragma once

#include <string>

#include "ucs/layout/layout.hpp"

namespace cuda_nc {

// Null, with one sentence in *error_p: the text is wrong, or there is no memory.
layout_ref parse_layout(const std::string &text, std::string *error_p);

// All forms with their arguments, as text for a program's help.
std::string layout_forms();

}  // namespace cuda_nc
