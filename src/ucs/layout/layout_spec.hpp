// The text form of a layout, for tools and tests.
// layout_forms() and the manual describe it. Sizes take the suffixes K, M and G (powers of 1024).
#pragma once

#include <string>

#include "ucs/layout/layout.hpp"

namespace cuda_nc {

// Returns null and puts one sentence into *error_p where the text is wrong.
layout_ref parse_layout(const std::string &text, std::string *error_p);

// Every form with its arguments, a paragraph for the help of a program.
std::string layout_forms();

}  // namespace cuda_nc
