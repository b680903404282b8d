#include "tools/perftest/message/product_library.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "tools/perftest/support/run_error.hpp"

namespace cuda_nc::tools {
namespace {

std::string own_directory() {
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
    const std::string all(path, length > 0 ? static_cast<size_t>(length) : 0);
    return all.substr(0, all.rfind('/') + 1);
}

// `installed` is relative to the library directory.
void *load(const std::string &name, const std::string &installed) {
    if (void *loaded = dlopen(name.c_str(), RTLD_NOW | RTLD_NOLOAD)) {
        return loaded;
    }
    const std::string here = own_directory();
    std::string reasons;
    for (const std::string &path : {here + ".libs/" + name, here + "../lib/" + installed,
                                    std::string(CUDA_NC_LIBDIR "/") + installed, name}) {
        if (path.find('/') != std::string::npos && access(path.c_str(), F_OK) != 0) {
            continue;
        }
        if (void *library = dlopen(path.c_str(), RTLD_NOW)) {
            return library;
        }
        const char *reason = dlerror();
        reasons += reasons.empty() ? "" : "; ";
        reasons += reason != nullptr ? reason : path;
    }
    throw run_error(fmt::format("{} cannot be loaded: {}", name, reasons));
}

template <class Function>
void find(void *library, const char *name, Function *function_p) {
    *function_p = reinterpret_cast<Function>(dlsym(library, name));
    if (*function_p == nullptr) {
        throw run_error(fmt::format("libcuda_nc.so.0 has no {}: is it of another release?", name));
    }
}

}  // namespace

const product_library &load_product() {
    static const product_library only = [] {
        product_library has;
        void *library = load("libcuda_nc.so.0", "libcuda_nc.so.0");
        find(library, "cuda_nc_version", &has.version);
        find(library, "cuda_nc_dt_create", &has.dt_create);
        find(library, "cuda_nc_dt_destroy", &has.dt_destroy);
        find(library, "cuda_nc_sim_malloc", &has.sim_malloc);
        find(library, "cuda_nc_sim_free", &has.sim_free);
        find(library, "cuda_nc_sim_memcpy", &has.sim_memcpy);
        return has;
    }();
    return only;
}

void load_plugin() {
    load("libuct_cudanc.so.0", "ucx-cuda-nc/libuct_cudanc.so.0");
}

}  // namespace cuda_nc::tools
