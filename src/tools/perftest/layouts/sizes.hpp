// Ranges of message sizes, and layouts that are made as large as a message shall be.
//
// A text form of a layout with a `*` in it stands for a family: `*` is replaced by a whole number
// n, `8*` by 8 n. `vector:*,8,16` are vectors of n blocks, `vector:*,8*,16*` square sub-matrices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ucs/layout/layout.hpp"

namespace cuda_nc::tools {

// "64K", "8,64K,1M", "8:64M" (by factors of 2), "8:64M:4" (by factors of 4), or several of these
// with commas. Throws run_error with a sentence for the user.
std::vector<uint64_t> parse_sizes(const std::string &text);

bool is_family(const std::string &layout_text) noexcept;

// The member of a family for n.
std::string member_text(const std::string &family, uint64_t n);

struct fitted_layout {
    std::string text;  // without `*`
    uint64_t bytes = 0;
};

// The largest member of at most `bytes` packed bytes; nothing where even the smallest has more.
// A text that is no family is taken as it is, whatever its size. Throws run_error where the text is
// wrong.
std::optional<fitted_layout> fit_layout(const std::string &text, uint64_t bytes);

}  // namespace cuda_nc::tools
