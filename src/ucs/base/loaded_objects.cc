#include "ucs/base/loaded_objects.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstring>

namespace cuda_nc {
namespace {

const char *file_name(const char *path) noexcept {
    const char *slash = std::strrchr(path, '/');
    return slash != nullptr ? slash + 1 : path;
}

bool starts_with(const char *text, const char *prefix) noexcept {
    return std::strncmp(text, prefix, std::strlen(prefix)) == 0;
}

// Our libraries define the interposed symbols, or redirect to them.
bool is_ours(const char *path) noexcept {
    return starts_with(file_name(path), "libcuda_nc") ||
           starts_with(file_name(path), "libuct_cudanc");
}

}  // namespace

std::vector<std::string> loaded_objects() {
    std::vector<std::string> names;
    dl_iterate_phdr(
        [](dl_phdr_info *info, size_t, void *list) {
            static_cast<std::vector<std::string> *>(list)->emplace_back(info->dlpi_name);
            return 0;
        },
        &names);
    return names;
}

void *open_loaded(const char *path) noexcept {
    if (*path == '\0') {
        return dlopen(nullptr, RTLD_LAZY);
    }
    return dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
}

bool is_loaded(const char *prefix) noexcept {
    return dl_iterate_phdr(
               [](dl_phdr_info *info, size_t, void *wanted) {
                   return starts_with(file_name(info->dlpi_name), static_cast<char *>(wanted)) ? 1
                                                                                               : 0;
               },
               const_cast<char *>(prefix)) != 0;
}

bool is_library_loaded(const char *name) noexcept {
    return dl_iterate_phdr(
               [](dl_phdr_info *info, size_t, void *wanted) {
                   const char *called = static_cast<char *>(wanted);
                   const char *file = file_name(info->dlpi_name);
                   const char next = starts_with(file, called) ? file[std::strlen(called)] : '\0';
                   return next == '.' || next == '-' ? 1 : 0;
               },
               const_cast<char *>(name)) != 0;
}

void *find_definition(const char *symbol) noexcept try {
    for (const std::string &path : loaded_objects()) {
        void *handle = open_loaded(path.c_str());
        void *address = handle != nullptr ? dlsym(handle, symbol) : nullptr;
        Dl_info where;
        if (address != nullptr && dladdr(address, &where) != 0 && where.dli_fname != nullptr &&
            !is_ours(where.dli_fname)) {
            return address;
        }
        if (handle != nullptr) {
            dlclose(handle);
        }
    }
    return nullptr;
} catch (...) {
    return nullptr;
}

bool same_object(const void *left, const void *right) noexcept {
    Dl_info a, b;
    return dladdr(left, &a) != 0 && dladdr(right, &b) != 0 && a.dli_fbase == b.dli_fbase;
}

}  // namespace cuda_nc
