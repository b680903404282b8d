// UCX's tables as they lie in memory, as far as a transport needs them: UCX does not install their
// headers, and they differ between releases (1.19 to 1.23). Names of types and members are UCX's,
// so that test/abi can compare this file with each release's debug information.
//
// Only what is used has its true type; the rest are plain functions and pointers of the same size.
// Members named `reserved...` exist in some releases only.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include <ucs/type/status.h>

namespace cuda_nc::uct::abi {

using function = void (*)();

constexpr unsigned max_am_ids = 32;

// ---- settings

struct ucs_list_link {
    ucs_list_link *prev, *next;
};

struct ucs_config_global_list_entry {
    const char *name;
    const char *prefix;
    const void *table;
    size_t size;
    ucs_list_link list;
    uint8_t flags;
};

struct uct_iface_config {
    struct {
        void *methods;
        unsigned count;
    } alloc_methods;
    int failure;
    size_t max_num_eps;
};

// ---- memory domains

struct uct_component;
struct uct_md;
struct uct_iface;

struct uct_md_resource_desc {
    char md_name[16];
};

struct uct_tl_resource_desc {
    char tl_name[10];
    char dev_name[32];
    int dev_type;
    uint8_t sys_device;
};

struct uct_tl_device_resource {
    char name[32];
    int type;
    uint8_t sys_device;
};

// The twelfth member is 1.21's, which 1.23 gave its last parameter, and the thirteenth 1.23's:
// older releases do not read them.
struct uct_md_ops {
    void (*close)(uct_md *);
    ucs_status_t (*query)(uct_md *, void *attr_v2);
    ucs_status_t (*mem_alloc)(uct_md *, size_t *, void **, int memory_type, uint8_t device,
                              unsigned flags, const char *name, void **memh_p);
    ucs_status_t (*mem_free)(uct_md *, void *memh);
    ucs_status_t (*mem_advise)(uct_md *, void *memh, void *, size_t, unsigned);
    ucs_status_t (*mem_reg)(uct_md *, void *, size_t, const void *params, void **memh_p);
    ucs_status_t (*mem_dereg)(uct_md *, const void *params);
    ucs_status_t (*mem_query)(uct_md *, const void *, size_t, void *attr);
    ucs_status_t (*mkey_pack)(uct_md *, void *memh, void *, size_t, const void *params, void *);
    ucs_status_t (*mem_attach)(uct_md *, const void *mkey, void *params, void **memh_p);
    ucs_status_t (*detect_memory_type)(uct_md *, const void *, size_t, int *memory_type_p);
    ucs_status_t (*mem_elem_pack)(uct_md *, void *memh, uintptr_t rkey, void *element,
                                  void **release_handle_p);
    void (*mem_elem_release)(uct_md *, void *release_handle);
};

struct uct_md {
    const uct_md_ops *ops;
    uct_component *component;
};

// ---- transports

struct uct_component {
    char name[16];
    ucs_status_t (*query_md_resources)(uct_component *, uct_md_resource_desc **, unsigned *);
    ucs_status_t (*md_open)(uct_component *, const char *, const void *config, uct_md **);
    ucs_status_t (*cm_open)(uct_component *, void *worker, const void *config, void **);
    ucs_status_t (*rkey_unpack)(uct_component *, const void *, const void *params, uintptr_t *,
                                void **);
    ucs_status_t (*rkey_ptr)(uct_component *, uintptr_t, void *, uint64_t, void **);
    ucs_status_t (*rkey_release)(uct_component *, uintptr_t, void *);
    ucs_status_t (*rkey_compare)(uct_component *, uintptr_t, uintptr_t, const void *params, int *);
    ucs_config_global_list_entry md_config;
    ucs_config_global_list_entry cm_config;
    ucs_list_link tl_list;
    ucs_list_link list;
    uint64_t flags;
    void (*md_vfs_init)(uct_md *);
};

struct uct_iface_params;

struct uct_tl {
    char name[10];
    ucs_status_t (*query_devices)(uct_md *, uct_tl_device_resource **, unsigned *);
    ucs_status_t (*iface_open)(uct_md *, void *worker, const uct_iface_params *,
                               const uct_iface_config *, uct_iface **);
    ucs_config_global_list_entry config;
    ucs_list_link list;
};

// ---- interfaces and endpoints

struct uct_ep {
    uct_iface *iface;
};

struct uct_ep_params;
struct uct_iface_attr;

using uct_am_callback = ucs_status_t (*)(void *arg, void *data, size_t length, unsigned flags);
using uct_error_handler = ucs_status_t (*)(void *arg, uct_ep *, ucs_status_t);
using uct_pack_callback = size_t (*)(void *destination, void *arg);

struct uct_iface_ops {
    ucs_status_t (*ep_put_short)(uct_ep *, const void *, unsigned, uint64_t, uintptr_t rkey);
    ssize_t (*ep_put_bcopy)(uct_ep *, uct_pack_callback, void *, uint64_t, uintptr_t rkey);
    ucs_status_t (*ep_put_zcopy)(uct_ep *, const void *iov, size_t, uint64_t, uintptr_t rkey,
                                 void *completion);
    ucs_status_t (*ep_get_short)(uct_ep *, void *, unsigned, uint64_t, uintptr_t rkey);
    ucs_status_t (*ep_get_bcopy)(uct_ep *, function unpack, void *, size_t, uint64_t,
                                 uintptr_t rkey, void *completion);
    ucs_status_t (*ep_get_zcopy)(uct_ep *, const void *iov, size_t, uint64_t, uintptr_t rkey,
                                 void *completion);
    ucs_status_t (*ep_am_short)(uct_ep *, uint8_t id, uint64_t header, const void *, unsigned);
    ucs_status_t (*ep_am_short_iov)(uct_ep *, uint8_t id, const void *iov, size_t);
    ssize_t (*ep_am_bcopy)(uct_ep *, uint8_t id, uct_pack_callback, void *, unsigned flags);
    ucs_status_t (*ep_am_zcopy)(uct_ep *, uint8_t id, const void *header, unsigned, const void *iov,
                                size_t, unsigned flags, void *completion);
    ucs_status_t (*ep_atomic_cswap64)(uct_ep *, uint64_t, uint64_t, uint64_t, uintptr_t rkey,
                                      uint64_t *, void *completion);
    ucs_status_t (*ep_atomic_cswap32)(uct_ep *, uint32_t, uint32_t, uint64_t, uintptr_t rkey,
                                      uint32_t *, void *completion);
    ucs_status_t (*ep_atomic32_post)(uct_ep *, unsigned, uint32_t, uint64_t, uintptr_t rkey);
    ucs_status_t (*ep_atomic64_post)(uct_ep *, unsigned, uint64_t, uint64_t, uintptr_t rkey);
    ucs_status_t (*ep_atomic32_fetch)(uct_ep *, unsigned, uint32_t, uint32_t *, uint64_t,
                                      uintptr_t rkey, void *completion);
    ucs_status_t (*ep_atomic64_fetch)(uct_ep *, unsigned, uint64_t, uint64_t *, uint64_t,
                                      uintptr_t rkey, void *completion);
    function ep_tag_eager_short;
    function ep_tag_eager_bcopy;
    function ep_tag_eager_zcopy;
    function ep_tag_rndv_zcopy;
    function ep_tag_rndv_cancel;
    function ep_tag_rndv_request;
    function iface_tag_recv_zcopy;
    function iface_tag_recv_cancel;
    ucs_status_t (*ep_pending_add)(uct_ep *, void *request, unsigned flags);
    void (*ep_pending_purge)(uct_ep *, function callback, void *arg);
    ucs_status_t (*ep_flush)(uct_ep *, unsigned flags, void *completion);
    ucs_status_t (*ep_fence)(uct_ep *, unsigned flags);
    ucs_status_t (*ep_check)(uct_ep *, unsigned flags, void *completion);
    ucs_status_t (*ep_create)(const uct_ep_params *, uct_ep **);
    function ep_connect;
    function ep_disconnect;
    function cm_ep_conn_notify;
    void (*ep_destroy)(uct_ep *);
    ucs_status_t (*ep_get_address)(uct_ep *, void *address);
    ucs_status_t (*ep_connect_to_ep)(uct_ep *, const void *device_address, const void *ep_address);
    function iface_accept;
    function iface_reject;
    ucs_status_t (*iface_flush)(uct_iface *, unsigned flags, void *completion);
    ucs_status_t (*iface_fence)(uct_iface *, unsigned flags);
    void (*iface_progress_enable)(uct_iface *, unsigned flags);
    void (*iface_progress_disable)(uct_iface *, unsigned flags);
    unsigned (*iface_progress)(uct_iface *);
    ucs_status_t (*iface_event_fd_get)(uct_iface *, int *);
    ucs_status_t (*iface_event_arm)(uct_iface *, unsigned events);
    void (*iface_close)(uct_iface *);
    ucs_status_t (*iface_query)(uct_iface *, uct_iface_attr *);
    ucs_status_t (*iface_get_device_address)(uct_iface *, void *address);
    ucs_status_t (*iface_get_address)(uct_iface *, void *address);
    int (*iface_is_reachable)(uct_iface *, const void *device_address, const void *iface_address);
};

struct uct_iface {
    uct_iface_ops ops;
};

struct uct_am_handler {
    uct_am_callback cb;
    void *arg;
    uint32_t flags;
};

struct uct_base_iface {
    uct_iface super;
    const void *internal_ops;
    uct_md *md;
    void *worker;
    uct_am_handler am[max_am_ids];
    function am_tracer;
    void *am_tracer_arg;
    uct_error_handler err_handler;
    void *err_handler_arg;
    uint32_t err_handler_flags;
    struct {
        int id;
        unsigned refcount;
    } prog;
    unsigned progress_flags;
    struct {
        unsigned num_alloc_methods;
        int alloc_methods[5];
        int failure_level;
        size_t max_num_eps;
    } config;
};

}  // namespace cuda_nc::uct::abi
