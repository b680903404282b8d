#include "uct/cuda_nc/ucx/ucx.hpp"

#include <array>
#include <cstdlib>
#include <mutex>

namespace cuda_nc::uct {
namespace {

struct lookup {
    const ucx_instance &ucx;
    const char *missing = nullptr;

    template <typename pointer>
    void operator()(const char *symbol, pointer *pointer_p) {
        void *address = ucx.find(symbol);
        if (address == nullptr && missing == nullptr) {
            missing = symbol;
        }
        *pointer_p = reinterpret_cast<pointer>(address);
    }
};

const char *look_up_all(const ucx_instance &ucx, ucx_api &api) noexcept {
    lookup find = {ucx};
#define FIND(name) find(#name, &api.name)
    FIND(uct_query_components);
    FIND(uct_release_component_list);
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
    find("ucs_async_context_create", &api.ucs_async_context_create);
    find("ucs_async_context_destroy", &api.ucs_async_context_destroy);
    if (api.which == release::v1_20 || api.which >= release::v1_22) {
        find("uct_iface_base_query_v2", &api.uct_iface_base_query_v2);
    }
    // A UCX built without memory statistics has only the names.
    lookup find_optional = {ucx};
    find_optional("ucs_malloc", &api.ucs_malloc);
    find_optional("ucs_free", &api.ucs_free);
    find_optional("ucm_set_event_handler", &api.ucm_set_event_handler);
    if (api.ucs_malloc == nullptr || api.ucs_free == nullptr) {
        api.ucs_malloc = [](size_t size, const char *) { return std::malloc(size); };
        api.ucs_free = [](void *memory) { std::free(memory); };
    }
    return find.missing;
}

// Which tables a release has shows in the functions that read them.
bool has_functions_of(const ucx_instance &ucx, release which) noexcept {
    auto has = [&ucx](const char *symbol) { return ucx.find(symbol) != nullptr; };
    return has("uct_iface_mem_element_pack") == (which == release::v1_20) &&
           has("uct_md_mem_elem_pack") == (which >= release::v1_21) &&
           has("uct_ep_put_sgl_zcopy") == (which >= release::v1_22) &&
           has("uct_ep_get_sgl_zcopy") == (which >= release::v1_23) &&
           has("uct_ep_outstanding_purge") == (which >= release::v1_23) &&
           has("uct_md_mem_elem_release") == (which >= release::v1_23);
}

const char *look_up(const ucx_instance &ucx, ucx_api &api) noexcept {
    api.which = static_cast<release>(ucx.minor - 19);
    api.instance = ucx.index;
    static_assert(last_known_minor == 23, "the sentence below, enum release");
    if (!ucx.is_known() || ucx.minor < 19) {
        return "it serves UCX 1.19 to 1.23";
    }
    if (!has_functions_of(ucx, api.which)) {
        return "this UCX does not have the functions of its release, or has those of a later one";
    }
    return look_up_all(ucx, api);
}

}  // namespace

const ucx_api *find_api(const ucx_instance &ucx, const char **why_p) noexcept {
    static std::array<std::once_flag, max_ucx_instances> once;
    static std::array<ucx_api, max_ucx_instances> all;
    static std::array<const char *, max_ucx_instances> missing;
    std::call_once(once[ucx.index], [&] { missing[ucx.index] = look_up(ucx, all[ucx.index]); });
    *why_p = missing[ucx.index];
    return *why_p == nullptr ? &all[ucx.index] : nullptr;
}

}  // namespace cuda_nc::uct
