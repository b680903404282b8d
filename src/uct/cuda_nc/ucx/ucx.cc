#include "uct/cuda_nc/ucx/ucx.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "ucs/base/loaded_objects.hpp"
#include "ucs/base/log.hpp"

namespace cuda_nc::uct {
namespace {

// A symbol of the loaded library, also where a package has renamed that (libuct-1a2b3c.so).
void *find_symbol(const char *library, const char *symbol) noexcept {
    char name[32];
    snprintf(name, sizeof(name), "%s.so.0", library);
    void *handle = open_loaded(name);
    void *address = handle != nullptr ? dlsym(handle, symbol) : nullptr;
    return address != nullptr ? address : find_in_library(library, symbol);
}

struct lookup {
    const char *missing = nullptr;

    template <typename pointer>
    void operator()(const char *library, const char *symbol, pointer *pointer_p) {
        void *address = find_symbol(library, symbol);
        if (address == nullptr && missing == nullptr) {
            missing = symbol;
        }
        *pointer_p = reinterpret_cast<pointer>(address);
    }
};

const char *look_up_all(ucx_api &api) noexcept {
    lookup find;
#define FIND(name) find("libuct", #name, &api.name)
    FIND(uct_component_register);
    FIND(uct_tl_register);
    FIND(uct_md_config_read);
    FIND(uct_md_iface_config_read);
    FIND(uct_config_release);
    FIND(uct_md_open);
    FIND(uct_md_close);
    FIND(uct_md_query);
    FIND(uct_md_mem_reg);
    FIND(uct_md_mem_dereg);
    FIND(uct_md_mkey_pack);
    FIND(uct_rkey_unpack);
    FIND(uct_rkey_release);
    FIND(uct_md_query_tl_resources);
    FIND(uct_release_tl_resource_list);
    FIND(uct_iface_open);
    FIND(uct_iface_close);
    FIND(uct_iface_set_am_handler);
    FIND(uct_iface_estimate_perf);
    FIND(uct_iface_is_reachable_v2);
    FIND(uct_ep_create);
    FIND(uct_ep_destroy);
    FIND(uct_ep_query);
    FIND(uct_ep_invalidate);
    FIND(uct_ep_connect_to_ep_v2);
    FIND(uct_ep_is_connected);
    FIND(uct_worker_create);
    FIND(uct_worker_destroy);
    FIND(uct_worker_progress_register_safe);
    FIND(uct_worker_progress_unregister_safe);
    FIND(uct_components_list);
    FIND(uct_md_config_table);
    FIND(uct_iface_config_table);
#undef FIND
    find("libucs", "ucs_async_context_create", &api.ucs_async_context_create);
    find("libucs", "ucs_async_context_destroy", &api.ucs_async_context_destroy);
    if (api.which == release::v1_20 || api.which == release::v1_22) {
        find("libuct", "uct_iface_base_query_v2", &api.uct_iface_base_query_v2);
    }
    // A UCX built without memory statistics has only the names.
    lookup find_optional;
    find_optional("libucs", "ucs_malloc", &api.ucs_malloc);
    find_optional("libucs", "ucs_free", &api.ucs_free);
    if (api.ucs_malloc == nullptr || api.ucs_free == nullptr) {
        api.ucs_malloc = [](size_t size, const char *) { return std::malloc(size); };
        api.ucs_free = [](void *memory) { std::free(memory); };
    }
    return find.missing;
}

// Which tables a release has shows in the functions that read them.
bool has_functions_of(release which) noexcept {
    auto has = [](const char *symbol) { return find_symbol("libuct", symbol) != nullptr; };
    return has("uct_iface_mem_element_pack") == (which == release::v1_20) &&
           has("uct_md_mem_elem_pack") == (which >= release::v1_21) &&
           has("uct_ep_put_sgl_zcopy") == (which == release::v1_22);
}

bool identify(unsigned *major_p, unsigned *minor_p, unsigned *patch_p, release *which_p) noexcept {
    using version_f = void (*)(unsigned *, unsigned *, unsigned *);
    auto version = reinterpret_cast<version_f>(find_symbol("libucp", "ucp_get_version"));
    if (version == nullptr) {
        return false;
    }
    version(major_p, minor_p, patch_p);
    *which_p = static_cast<release>(*minor_p - 19);
    return true;
}

const ucx_api *look_up() noexcept {
    static ucx_api api = {};
    unsigned major = 0, minor = 0, patch = 0;
    if (!identify(&major, &minor, &patch, &api.which)) {
        nc_debug("the transport cuda_nc stays away: no libucp is loaded");
        return nullptr;
    }
    const char *reason = nullptr;
    if (major != 1 || minor < 19 || minor > 22) {
        reason = "it serves UCX 1.19 to 1.22";
    } else if (!has_functions_of(api.which)) {
        reason = "this UCX does not have the functions of its release";
    } else if ((reason = look_up_all(api)) == nullptr) {
        return &api;
    }
    nc_warn("the transport cuda_nc stays away from UCX %u.%u.%u, the job runs without it: %s",
            major, minor, patch, reason);
    return nullptr;
}

}  // namespace

const ucx_api *find_ucx() noexcept {
    static const ucx_api *const found = look_up();
    return found;
}

}  // namespace cuda_nc::uct
