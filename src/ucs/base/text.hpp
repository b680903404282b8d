// Parsing of text that people write.
#pragma once

#include <string>
#include <vector>

namespace cuda_nc {

// The parts of `text` between separators, empty parts included; at least one part.
inline std::vector<std::string> split(const std::string &text, char separator) {
    std::vector<std::string> parts(1);
    for (char one : text) {
        if (one == separator) {
            parts.emplace_back();
        } else {
            parts.back() += one;
        }
    }
    return parts;
}

}  // namespace cuda_nc
