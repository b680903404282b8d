// What is loaded into this process, and which of it defines a symbol.
#pragma once

#include <string>
#include <vector>

namespace cuda_nc {

// Paths of all loaded objects in load order; the program itself is "".
std::vector<std::string> loaded_objects();

// A handle of a loaded object, or null; loads nothing. "" is the program. The object then stays
// loaded: what is looked up on the handle is valid for ever.
void *open_loaded(const char *path) noexcept;

// True where a loaded object's file name begins with `prefix` ("libuct_cuda").
bool is_loaded(const char *prefix) noexcept;

// The same of the library called `name`, and not of others whose names go on: packages put a hash
// behind a dash.
bool is_library_loaded(const char *name) noexcept;

// `symbol` as the first loaded library whose file name begins with `prefix` resolves it; null
// where none does.
void *find_in_library(const char *prefix, const char *symbol) noexcept;

// `symbol` in the object that itself defines it, whatever its name and however it was loaded;
// objects of this product are skipped.
void *find_definition(const char *symbol) noexcept;

// True where the same loaded object holds both addresses.
bool same_object(const void *left, const void *right) noexcept;

}  // namespace cuda_nc
