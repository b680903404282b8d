#include "uct/cuda_nc/component.hpp"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>

#include "ucs/base/log.hpp"
#include "ucs/base/settings.hpp"
#include "ucs/base/ucx_instance.hpp"
#include "uct/cuda_nc/carrier/carrier.hpp"
#include "uct/cuda_nc/choice.hpp"
#include "uct/cuda_nc/iface.hpp"
#include "uct/cuda_nc/md.hpp"
#include "uct/cuda_nc/one_sided/component.hpp"
#include "uct/cuda_nc/transport.h"
#include "uct/cuda_nc/ucx/self_check.hpp"

namespace cuda_nc::uct {
namespace {

using namespace abi;

constexpr char setting_prefix[] = "CUDA_NC_";

// ---- remote keys are the carrier's

uct_component *theirs(uct_component *component) noexcept {
    return carrier::of(component).find_component();
}

ucs_status_t unpack_rkey(uct_component *component, const void *buffer, const void *params,
                         uintptr_t *rkey_p, void **handle_p) {
    uct_component *other = theirs(component);
    return other->rkey_unpack(other, buffer, params, rkey_p, handle_p);
}

ucs_status_t rkey_pointer(uct_component *component, uintptr_t rkey, void *handle, uint64_t address,
                          void **pointer_p) {
    uct_component *other = theirs(component);
    return other->rkey_ptr(other, rkey, handle, address, pointer_p);
}

ucs_status_t release_rkey(uct_component *component, uintptr_t rkey, void *handle) {
    uct_component *other = theirs(component);
    return other->rkey_release(other, rkey, handle);
}

ucs_status_t compare_rkeys(uct_component *component, uintptr_t left, uintptr_t right,
                           const void *params, int *result_p) {
    uct_component *other = theirs(component);
    return other->rkey_compare(other, left, right, params, result_p);
}

ucs_status_t open_cm(uct_component *, void *, const void *, void **) {
    return UCS_ERR_UNSUPPORTED;
}

void init_md_vfs(uct_md *) {}

// ----

bool is_registered(const ucx_api &ucx) noexcept {
    bool found = false;
    for_each_component(ucx, [&](uct_component *component) {
        found =
            found || std::strncmp(component->name, transport_name, sizeof(transport_name) - 1) == 0;
    });
    return found;
}

void fill(carrier &on, const ucx_api &ucx) {
    on.ucx = &ucx;
    uct_component &component = on.component;
    std::snprintf(component.name, sizeof(component.name), "%s_%.7s", transport_name,
                  on.name.c_str());
    component.query_md_resources = query_md_resources;
    component.md_open = open_md;
    component.cm_open = open_cm;
    component.rkey_unpack = unpack_rkey;
    component.rkey_ptr = rkey_pointer;
    component.rkey_release = release_rkey;
    component.rkey_compare = compare_rkeys;
    component.md_config.name = "cuda_nc memory domain";
    component.md_config.prefix = setting_prefix;
    component.md_config.table = ucx.uct_md_config_table;
    component.md_config.size = 1;
    component.cm_config.name = "";
    component.cm_config.prefix = "";
    component.tl_list = {&component.tl_list, &component.tl_list};
    component.md_vfs_init = init_md_vfs;

    std::snprintf(on.transport.name, sizeof(on.transport.name), "%s", transport_name);
    on.transport.query_devices = query_devices;
    on.transport.iface_open = open_iface;
    on.transport.config.name = "cuda_nc transport";
    on.transport.config.prefix = setting_prefix;
    on.transport.config.table = ucx.uct_iface_config_table;
    on.transport.config.size = sizeof(uct_iface_config);
}

// Throws std::bad_alloc.
const transport_choice &decided() {
    static const transport_choice &choice = *[] {
        auto *made = new transport_choice(choose_transport());
        nc_debug("the transport cuda_nc is %s: %s", made->on ? "on" : "off", made->why.c_str());
        return made;
    }();
    return choice;
}

// Of releases before its first nobody needs to hear who has not asked for it.
void stay_away(const ucx_instance &ucx, const char *why, bool asked) noexcept {
    constexpr char text[] =
        "the transport cuda_nc stays away from UCX %u.%u.%u, the job runs without it: %s";
    if (asked || ucx.at_least(1, 19)) {
        nc_warn(text, ucx.major, ucx.minor, ucx.release, why);
    } else {
        nc_debug(text, ucx.major, ucx.minor, ucx.release, why);
    }
}

}  // namespace

void register_transport(const void *in_ucx) noexcept try {
    static std::array<std::atomic<bool>, max_ucx_instances> done;
    const transport_choice &choice = decided();
    if (!choice.on) {
        return;
    }
    const caller_ucx with = ucx_around(in_ucx);
    if (!with.is_certain() || done[with.ucx->index].exchange(true)) {
        return;
    }
    const char *why;
    const ucx_api *ucx = find_api(*with.ucx, &why);
    if (ucx == nullptr) {
        stay_away(*with.ucx, why, choice.asked);
        return;
    }
    if (is_registered(*ucx)) {
        return;
    }
    if (config().one_sided) {
        register_one_sided(*ucx);
    }
    if (choice.carriers.empty()) {
        nc_warn(
            "UCX_CUDA_NC_CARRIERS is empty, so the transport cuda_nc is disabled; set it to the "
            "names of UCX transports, such as posix,tcp,self");
    }
    for (const std::string &name : choice.carriers) {
        auto *on = new carrier();  // UCX's for ever
        on->name = name;
        fill(*on, *ucx);
        ucx->uct_component_register(&on->component);
        ucx->uct_tl_register(&on->component, &on->transport);
        nc_debug("the transport cuda_nc stands on %s", name.c_str());
    }
} catch (const std::bad_alloc &) {
    nc_warn("out of memory: the job runs without the transport cuda_nc");
}

transport_in_ucx find_transport(const void *in_ucx) {
    const caller_ucx with = ucx_around(in_ucx);
    const char *why = "no UCX is loaded";
    const ucx_api *ucx = with.is_certain() ? find_api(*with.ucx, &why) : nullptr;
    if (ucx == nullptr) {
        return {why, {}};
    }
    unsigned number = 0;
    void *components = nullptr;
    if (ucx->uct_query_components(&components, &number) == UCS_OK) {
        ucx->uct_release_component_list(components);
    }
    why = find_mismatch(*ucx);
    return {why != nullptr ? std::string(why) + " of this UCX is not as in its release" : "",
            names_of_transports(*ucx)};
}

}  // namespace cuda_nc::uct

void cuda_nc_register_transport(const void *in_ucx) {
    cuda_nc::uct::register_transport(in_ucx);
}

int cuda_nc_transport_is_wanted() try {
    return cuda_nc::uct::decided().on ? 1 : 0;
} catch (const std::bad_alloc &) {
    return 0;
}
