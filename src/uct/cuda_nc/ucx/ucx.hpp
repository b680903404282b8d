// A UCX instance as the transport uses it: its public UCT functions, looked up and never linked,
// and which release it is.
#pragma once

#include <cstddef>
#include <cstring>

#include "ucs/base/ucx_instance.hpp"
#include "uct/cuda_nc/ucx/abi_memory.hpp"
#include "uct/cuda_nc/ucx/abi_parameters.hpp"

namespace cuda_nc::uct {

enum class release { v1_19, v1_20, v1_21, v1_22, v1_23 };

struct ucx_api {
    release which;
    unsigned instance;  // index of the UCX instance

    ucs_status_t (*uct_query_components)(void **list_p, unsigned *number_p);
    void (*uct_release_component_list)(void *list);
    void (*uct_component_register)(abi::uct_component *);
    void (*uct_tl_register)(abi::uct_component *, abi::uct_tl *);
    ucs_status_t (*uct_md_config_read)(abi::uct_component *, const char *env_prefix,
                                       const char *file, void **config_p);
    ucs_status_t (*uct_md_iface_config_read)(abi::uct_md *, const char *transport,
                                             const char *env_prefix, const char *file,
                                             abi::uct_iface_config **config_p);
    void (*uct_config_release)(void *config);
    ucs_status_t (*uct_md_open)(abi::uct_component *, const char *name, const void *config,
                                abi::uct_md **);
    void (*uct_md_close)(abi::uct_md *);
    ucs_status_t (*uct_md_query)(abi::uct_md *, abi::uct_md_attr *);
    ucs_status_t (*uct_md_mem_reg)(abi::uct_md *, void *address, size_t length, unsigned flags,
                                   void **memh_p);
    ucs_status_t (*uct_md_mem_dereg)(abi::uct_md *, void *memh);
    ucs_status_t (*uct_md_mkey_pack)(abi::uct_md *, void *memh, void *key);
    ucs_status_t (*uct_rkey_unpack)(abi::uct_component *, const void *key, abi::uct_rkey_bundle *);
    ucs_status_t (*uct_rkey_release)(abi::uct_component *, const abi::uct_rkey_bundle *);
    ucs_status_t (*uct_md_query_tl_resources)(abi::uct_md *, abi::uct_tl_resource_desc **,
                                              unsigned *);
    void (*uct_release_tl_resource_list)(abi::uct_tl_resource_desc *);
    ucs_status_t (*uct_iface_open)(abi::uct_md *, void *worker, const abi::uct_iface_params *,
                                   const abi::uct_iface_config *, abi::uct_iface **);
    void (*uct_iface_close)(abi::uct_iface *);
    ucs_status_t (*uct_iface_set_am_handler)(abi::uct_iface *, uint8_t id, abi::uct_am_callback,
                                             void *arg, uint32_t flags);
    ucs_status_t (*uct_iface_estimate_perf)(abi::uct_iface *, abi::uct_perf_attr_t *);
    int (*uct_iface_is_reachable_v2)(const abi::uct_iface *,
                                     const abi::uct_iface_is_reachable_params *);
    ucs_status_t (*uct_ep_create)(const abi::uct_ep_params *, abi::uct_ep **);
    void (*uct_ep_destroy)(abi::uct_ep *);
    ucs_status_t (*uct_ep_query)(abi::uct_ep *, void *attr);
    ucs_status_t (*uct_ep_invalidate)(abi::uct_ep *, const void *params);
    ucs_status_t (*uct_ep_connect_to_ep_v2)(abi::uct_ep *, const void *device_address,
                                            const void *ep_address, const void *params);
    int (*uct_ep_is_connected)(abi::uct_ep *, const abi::uct_ep_is_connected_params *);
    ucs_status_t (*uct_worker_create)(void *async, int thread_mode, void **worker_p);
    void (*uct_worker_destroy)(void *worker);
    void (*uct_worker_progress_register_safe)(void *worker, unsigned (*callback)(void *), void *arg,
                                              unsigned flags, int *id_p);
    void (*uct_worker_progress_unregister_safe)(void *worker, int *id_p);
    ucs_status_t (*ucs_async_context_create)(int mode, void **async_p);
    void (*ucs_async_context_destroy)(void *async);
    void *(*ucs_malloc)(size_t size, const char *name);  // what UCX frees itself
    void (*ucs_free)(void *);
    // Null in a UCX without memory hooks. What libucm calls enumerations are ints here.
    ucs_status_t (*ucm_set_event_handler)(int events, int priority,
                                          void (*callback)(int event, void *what, void *arg),
                                          void *arg);
    ucs_status_t (*uct_iface_base_query_v2)(abi::uct_iface *, void *attr);  // null in 1.19, 1.21

    abi::ucs_list_link *uct_components_list;
    const void *uct_md_config_table;
    const void *uct_iface_config_table;
};

// Null where we do not know the tables of this UCX, with half a sentence in *why_p. Both valid for
// ever. Thread safe.
const ucx_api *find_api(const ucx_instance &ucx, const char **why_p) noexcept;

// The components that UCX knows now.
template <typename visitor>
void for_each_component(const ucx_api &ucx, visitor visit) {
    for (abi::ucs_list_link *link = ucx.uct_components_list->next; link != ucx.uct_components_list;
         link = link->next) {
        visit(reinterpret_cast<abi::uct_component *>(reinterpret_cast<char *>(link) -
                                                     offsetof(abi::uct_component, list)));
    }
}

// And their transports.
template <typename visitor>
void for_each_transport(const ucx_api &ucx, visitor visit) {
    for_each_component(ucx, [&](abi::uct_component *component) {
        const abi::ucs_list_link &head = component->tl_list;
        for (abi::ucs_list_link *link = head.next; link != &head; link = link->next) {
            visit(component, *reinterpret_cast<abi::uct_tl *>(reinterpret_cast<char *>(link) -
                                                              offsetof(abi::uct_tl, list)));
        }
    });
}

inline bool is_named(const abi::uct_tl &transport, const char *name) noexcept {
    return std::strncmp(transport.name, name, sizeof(transport.name)) == 0;
}

}  // namespace cuda_nc::uct
