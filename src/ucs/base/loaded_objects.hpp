// Which objects are loaded into this process, and which of them define a symbol.
#pragma once

#include <dlfcn.h>

#include <string>
#include <vector>

namespace cuda_nc {

// Paths of all loaded objects in load order; the program itself is "".
std::vector<std::string> loaded_objects();

// A handle of a loaded object, or null; loads nothing. "" is the program. The object then stays
// loaded, so that addresses found by the handle stay valid.
void *open_loaded(const char *path) noexcept;

// True where a loaded object's file name begins with `prefix` ("libuct_cuda").
bool is_loaded(const char *prefix) noexcept;

// True where the library `name` itself is loaded: "libuct_cuda" is libuct_cuda.so.0 or
// libuct_cuda-1a2b.so.0 (packages append a hash), not libuct_cuda_gdrcopy.so.0.
bool is_library_loaded(const char *name) noexcept;

// The function or variable `symbol` that an object's handle reaches. False, and null: there is
// none.
template <typename pointer>
bool look_up(void *handle, const char *symbol, pointer *pointer_p) noexcept {
    *pointer_p = reinterpret_cast<pointer>(dlsym(handle, symbol));
    return *pointer_p != nullptr;
}

// The address of `symbol` in a loaded object outside this product, however that was loaded
// (RTLD_LOCAL too); null where none defines it.
void *find_definition(const char *symbol) noexcept;

// True where the same loaded object holds both addresses.
bool same_object(const void *left, const void *right) noexcept;

}  // namespace cuda_nc
