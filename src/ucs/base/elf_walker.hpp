// Redirects symbols of the objects that are loaded now, by changing the words through which they
// call.
#pragma once

#include <cstddef>

namespace cuda_nc {

struct replacement {
    const char *symbol;
    void *value;
};

// Returns how many words were changed; a word that already holds the value is not counted. Objects
// loaded later are not touched.
size_t redirect_loaded_objects(const replacement *replacements, size_t num_replacements) noexcept;

}  // namespace cuda_nc
