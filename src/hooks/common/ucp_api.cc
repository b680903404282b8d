#include "hooks/common/ucp_api.hpp"

#include <dlfcn.h>

#include <atomic>

#include "ucs/base/loaded_objects.hpp"

namespace cuda_nc::hooks {
namespace {

template <typename function>
void look_up(void *handle, const char *symbol, function *function_p) noexcept {
    // packages rename the libraries that they bundle: libucp-1a2b3c.so.0.0.0
    void *address = handle != nullptr ? dlsym(handle, symbol) : find_in_library("libucp", symbol);
    *function_p = reinterpret_cast<function>(address);
}

}  // namespace

const ucp_api *find_ucp() noexcept {
    static std::atomic<const ucp_api *> found{nullptr};
    const ucp_api *known = found.load(std::memory_order_acquire);
    if (known != nullptr) {
        return known;
    }
    void *handle = open_loaded("libucp.so.0");
    ucp_api api = {};
    void (*version)(unsigned *, unsigned *, unsigned *) = nullptr;
    look_up(handle, "ucp_dt_create_generic", &api.dt_create_generic);
    look_up(handle, "ucp_dt_destroy", &api.dt_destroy);
    look_up(handle, "ucp_tag_send_nbx", &api.tag_send_nbx);
    look_up(handle, "ucp_get_version", &version);
    if (api.dt_create_generic == nullptr || api.dt_destroy == nullptr || version == nullptr) {
        return nullptr;
    }
    version(&api.major, &api.minor, &api.release);
    static const ucp_api only = api;  // threads that race here have found the same
    found.store(&only, std::memory_order_release);
    return &only;
}

}  // namespace cuda_nc::hooks
