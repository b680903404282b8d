#include "tools/perftest/message/plugin.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <string>

#include <fmt/core.h>

#include "tools/perftest/support/run_error.hpp"

namespace cuda_nc::tools {
namespace {

constexpr const char *module_name = "libuct_cudanc.so.0";

// The directory of the libcuda_nc.so that this program uses, with a slash at its end. The module
// links the same library: the process has one copy of the product's state.
std::string library_directory() {
    Dl_info where = {};
    const void *symbol = dlsym(RTLD_DEFAULT, "cuda_nc_version");
    const std::string file =
        symbol != nullptr && dladdr(symbol, &where) != 0 ? where.dli_fname : "";
    return file.substr(0, file.rfind('/') + 1);
}

}  // namespace

void load_plugin() {
    if (dlopen(module_name, RTLD_NOW | RTLD_NOLOAD) != nullptr) {
        return;
    }
    const std::string beside = library_directory() + "ucx-cuda-nc/" + module_name;  // installed
    const std::string built = library_directory() + module_name;
    for (const std::string &path : {beside, built}) {
        if (access(path.c_str(), F_OK) == 0 && dlopen(path.c_str(), RTLD_NOW) != nullptr) {
            return;
        }
    }
    const char *reason = access(beside.c_str(), F_OK) == 0 ? dlerror() : nullptr;
    throw run_error(fmt::format("{} cannot be loaded: {}", module_name,
                                reason != nullptr ? reason : "there is no file " + beside));
}

}  // namespace cuda_nc::tools
