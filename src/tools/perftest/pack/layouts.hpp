// Which layouts a run of nc_perftest pack measures.
#pragma once

#include <string>
#include <vector>

#include "tools/perftest/layouts/catalogue.hpp"

namespace cuda_nc::tools {

struct layout_choice {
    std::string set;                   // of the catalogue; empty: none
    std::vector<std::string> layouts;  // names or texts, behind the set's
    std::string sizes;                 // of families, as parse_sizes() takes them; empty: none
    size_t misalign = 0;               // bytes, beyond those of the catalogue
};

// Layouts with sizes of their own, sizes outermost; members of families have their family's name
// and no bars. `notes_p` gets a sentence for each family and size that was left out. Throws
// run_error with what is wrong: the choice, a text, a family without sizes, nothing left.
std::vector<named_layout> choose_layouts(const layout_choice &from,
                                         std::vector<std::string> *notes_p);

}  // namespace cuda_nc::tools
