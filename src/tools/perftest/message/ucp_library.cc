#include "tools/perftest/message/ucp_library.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <fmt/core.h>

#include "tools/perftest/support/run_error.hpp"

namespace cuda_nc::tools {
namespace {

#ifndef CUDA_NC_UCX_LIBDIR
#define CUDA_NC_UCX_LIBDIR ""
#endif

void *load() {
    // As the environment has it; else the UCX that this program was built with.
    void *library = dlopen("libucp.so.0", RTLD_NOW | RTLD_GLOBAL);
    const char *why = library == nullptr ? dlerror() : nullptr;
    if (library == nullptr && *CUDA_NC_UCX_LIBDIR != '\0') {
        library = dlopen(CUDA_NC_UCX_LIBDIR "/libucp.so.0", RTLD_NOW | RTLD_GLOBAL);
    }
    if (library == nullptr) {
        throw run_error(fmt::format("UCX cannot be loaded: {}", why != nullptr ? why : "unknown"));
    }
    return library;
}

}  // namespace

const ucp_library &load_ucp() {
    static const ucp_library only = [] {
        ucp_library has;
        void *library = load();
#define CUDA_NC_FIND(name)                                                        \
    has.name = reinterpret_cast<decltype(has.name)>(dlsym(library, #name));       \
    if (has.name == nullptr) {                                                    \
        throw run_error("this UCX is too old for nc_perftest: it has no " #name); \
    }
        CUDA_NC_UCP_FUNCTIONS(CUDA_NC_FIND)
#undef CUDA_NC_FIND
        unsigned release = 0;
        has.ucp_get_version(&has.major, &has.minor, &release);
        has.ucp_ep_query =
            reinterpret_cast<decltype(has.ucp_ep_query)>(dlsym(library, "ucp_ep_query"));
        return has;
    }();
    return only;
}

}  // namespace cuda_nc::tools
