// Redirects calls of a symbol in all objects that are loaded now (the program and its libraries),
// by changing the addresses in their tables (GOT and PLT).
#pragma once

#include <cstddef>

namespace cuda_nc {

struct replacement {
    const char *symbol;
    void *value;
};

// Returns how many table entries were changed; an entry that already holds the value is not
// counted. Objects loaded later are not touched.
size_t redirect_loaded_objects(const replacement *replacements, size_t num_replacements) noexcept;

// The same in one object alone: the one that holds `address`, in its code or data.
size_t redirect_object(const void *address, const replacement *replacements,
                       size_t num_replacements) noexcept;

}  // namespace cuda_nc
