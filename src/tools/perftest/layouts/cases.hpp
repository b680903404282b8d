// Layouts of certain sizes: what a run measures, one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cuda_nc::tools {

struct layout_case {
    std::string name, text;  // as parse_layout takes it
    size_t misalign = 0;
    uint64_t bytes = 0;  // packed
};

// The cases of these layouts (names or texts) at these sizes, sizes outermost; contiguous messages
// only where asked for. `note_p` gets a sentence for each layout and size that was left out.
std::vector<layout_case> make_cases(const std::vector<std::string> &layouts,
                                    const std::vector<uint64_t> &sizes, size_t misalign,
                                    std::vector<std::string> *notes_p);

}  // namespace cuda_nc::tools
