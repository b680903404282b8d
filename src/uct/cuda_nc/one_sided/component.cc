#include "uct/cuda_nc/one_sided/component.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>

#include "ucs/base/log.hpp"
#include "ucs/gpu/device.hpp"
#include "uct/cuda_nc/component.hpp"
#include "uct/cuda_nc/memory/this_machine.hpp"
#include "uct/cuda_nc/one_sided/iface.hpp"
#include "uct/cuda_nc/one_sided/short_copies.hpp"
#include "uct/cuda_nc/one_sided/key.hpp"
#include "uct/cuda_nc/ucx/self_check.hpp"

namespace cuda_nc::uct {
namespace {

using namespace abi;

const char *name_of(served_memory which) noexcept {
    return which == served_memory::gpu ? "gpu" : "host";
}
constexpr char setting_prefix[] = "CUDA_NC_";
constexpr uintptr_t invalid_key = ~uintptr_t{0};  // UCT_INVALID_RKEY

ucs_status_t unsupported() {
    return UCS_ERR_UNSUPPORTED;
}

// ---- memory domain

void close_md(uct_md *md) {
    delete &one_sided_domain::of(md);
}

ucs_status_t query_md(uct_md *md, void *attr_v2) {
    auto &attr = *static_cast<uct_md_attr_v2 *>(attr_v2);
    const bool serves_gpus = one_sided_domain::of(md).served == served_memory::gpu;
    attr.max_alloc = 0;
    attr.max_reg = SIZE_MAX;
    attr.flags = md_flag::reg | md_flag::need_rkey | md_flag::invalidate | md_flag::invalidate_rma |
                 md_flag::invalidate_amo | (serves_gpus ? md_flag::need_memh : 0);
    attr.reg_mem_types = serves_gpus ? memory_type::cuda : memory_type::host;
    attr.reg_nonblock_mem_types = 0;
    attr.cache_mem_types = serves_gpus ? memory_type::cuda : 0;
    attr.gva_mem_types = 0;
    attr.detect_mem_types = serves_gpus && is_simulated() ? memory_type::cuda : 0;
    attr.alloc_mem_types = 0;
    // Local memory, without registration. GPUs: none, or UCX would copy to and from the host by it.
    attr.access_mem_types = serves_gpus ? 0 : memory_type::host;
    attr.dmabuf_mem_types = 0;
    attr.reg_cost = {0, 0};
    attr.rkey_packed_size = sizeof(packed_key);
    std::memset(attr.local_cpus, 0xff, sizeof(attr.local_cpus));
    attr.exported_mkey_packed_size = 0;
    attr.reg_alignment = 1;
    if (one_sided_domain::of(md).ucx->which >= release::v1_22) {
        attr.required_mem_flags = 0;
    }
    return UCS_OK;
}

// Memory that no launch of ours reaches is registered too: UCX would give up the registration with
// all its other domains.
ucs_status_t register_memory(uct_md *md, void *address, size_t, const void *, void **memh_p) {
    const bool is_host = one_sided_domain::of(md).served == served_memory::host;
    auto *made =
        new (std::nothrow) registered_memory(is_host ? list_mover::unreached : device_of(address));
    *memh_p = made;
    return made != nullptr ? UCS_OK : UCS_ERR_NO_MEMORY;
}

ucs_status_t deregister_memory(uct_md *, const void *parameters) {
    const auto &params = *static_cast<const uct_md_mem_dereg_params *>(parameters);
    delete static_cast<registered_memory *>(params.memh);
    const bool invalidates = (params.field_mask & dereg_param::flags) != 0 &&
                             (params.flags & dereg_param::invalidate) != 0;
    if (invalidates && (params.field_mask & dereg_param::completion) != 0 &&
        params.comp != nullptr && --params.comp->count == 0) {
        params.comp->func(params.comp);
    }
    return UCS_OK;
}

// A key of host memory cannot be taken back, and nothing is mapped that could keep the memory: so
// there is none for messages by rendezvous that a failure may end early. Only for them UCX asks for
// one that can be taken back, and it leaves out domains that do not promise it for all else too.
ucs_status_t pack_key(uct_md *md, void *memh, void *address, size_t length, const void *parameters,
                      void *buffer) try {
    auto &memory = *static_cast<registered_memory *>(memh);
    const auto begin = reinterpret_cast<uintptr_t>(address);
    packed_key key;
    if (one_sided_domain::of(md).served == served_memory::gpu) {
        key = memory.key_of(begin, length);
    } else {
        const auto *params = static_cast<const uct_md_mkey_pack_params *>(parameters);
        key = make_host_key(begin, length);
        if (params != nullptr && (params->field_mask & pack_param::flags) != 0 &&
            (params->flags & pack_param::invalidate_rma) != 0) {
            key.is_shared = sharing::none;
        }
    }
    std::memcpy(buffer, &key, sizeof(key));
    return UCS_OK;
} catch (const std::bad_alloc &) {
    return UCS_ERR_NO_MEMORY;
}

ucs_status_t query_memory(uct_md *md, const void *address, size_t length, void *attributes) {
    auto &attr = *static_cast<uct_md_mem_attr *>(attributes);
    if (one_sided_domain::of(md).served != served_memory::gpu) {
        return UCS_ERR_UNSUPPORTED;
    }
    const gpu::memory_info memory = gpu::platform::instance().query(address);
    if (!is_simulated() || memory.kind != gpu::memory_kind::device) {
        return UCS_ERR_INVALID_ADDR;
    }
    const gpu::allocation_info &whole = memory.allocation;
    const bool known = whole.id != 0;
    if (attr.field_mask & mem_attr_field::mem_type) {
        attr.mem_type = memory_type::cuda_number;
    }
    if (attr.field_mask & mem_attr_field::sys_dev) {
        attr.sys_dev = UINT8_MAX;  // unknown
    }
    if (attr.field_mask & mem_attr_field::base_address) {
        attr.base_address = known ? whole.base : const_cast<void *>(address);
    }
    if (attr.field_mask & mem_attr_field::alloc_length) {
        attr.alloc_length = known ? whole.size : length;
    }
    if (attr.field_mask & mem_attr_field::dmabuf_fd) {
        attr.dmabuf_fd = -1;
    }
    return UCS_OK;
}

ucs_status_t detect_memory(uct_md *md, const void *address, size_t, int *type_p) {
    if (one_sided_domain::of(md).served != served_memory::gpu || !is_simulated() ||
        gpu::platform::instance().query(address).kind != gpu::memory_kind::device) {
        return UCS_ERR_INVALID_ADDR;
    }
    *type_p = memory_type::cuda_number;
    return UCS_OK;
}

const uct_md_ops *md_ops() noexcept {
    // The table, and behind it what a later UCX would find there.
    static const auto ops = [] {
        struct {
            uct_md_ops known;
            ucs_status_t (*later[4])();
        } all;
        auto *each = reinterpret_cast<function *>(&all);
        for (size_t i = 0; i < sizeof(all) / sizeof(function); ++i) {
            each[i] = reinterpret_cast<function>(unsupported);
        }
        all.known.close = close_md;
        all.known.query = query_md;
        all.known.mem_reg = register_memory;
        all.known.mem_dereg = deregister_memory;
        all.known.mem_query = query_memory;
        all.known.mkey_pack = pack_key;
        all.known.detect_memory_type = detect_memory;
        return all;
    }();
    return &ops.known;
}

// ---- component

ucs_status_t query_resources(uct_component *component, uct_md_resource_desc **resources_p,
                             unsigned *number_p) {
    const ucx_api &ucx = *one_sided_component::of(component).ucx;
    *resources_p = nullptr;
    *number_p = 0;
    if (!is_checked(ucx)) {
        return UCS_OK;
    }
    auto *resource = static_cast<uct_md_resource_desc *>(
        ucx.ucs_malloc(sizeof(uct_md_resource_desc), "cuda_nc memory domain"));
    if (resource == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    std::snprintf(resource->md_name, sizeof(resource->md_name), "nc_%s",
                  name_of(one_sided_component::of(component).served));
    *resources_p = resource;
    *number_p = 1;
    return UCS_OK;
}

ucs_status_t open_md(uct_component *component, const char *, const void *, uct_md **md_p) {
    auto *made = new (std::nothrow) one_sided_domain;
    if (made == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    made->super = {md_ops(), component};
    made->ucx = one_sided_component::of(component).ucx;
    made->served = one_sided_component::of(component).served;
    if (made->served == served_memory::gpu && !is_simulated()) {
        lead_short_copies(*made->ucx);  // before interfaces are opened
    }
    watch_new_libraries();
    *md_p = &made->super;
    return UCS_OK;
}

ucs_status_t open_cm(uct_component *, void *, const void *, void **) {
    return UCS_ERR_UNSUPPORTED;
}

// UCS_ERR_UNREACHABLE: UCX then uses the keys of its other domains.
ucs_status_t unpack_key(uct_component *component, const void *buffer, const void *,
                        uintptr_t *rkey_p, void **handle_p) {
    const bool is_host = one_sided_component::of(component).served == served_memory::host;
    *rkey_p = invalid_key;  // UCP may read it after an error, too
    packed_key packed;
    std::memcpy(&packed, buffer, sizeof(packed));
    if (packed.version != one_sided_version ||
        packed.is_shared != (is_host ? sharing::host_memory : sharing::gpu_memory) ||
        packed.host != this_machine() || packed.process.pid_space != own_process_id().pid_space ||
        is_own(packed.process) || !allocation_holds(packed, packed.begin, packed.length)) {
        return UCS_ERR_UNREACHABLE;
    }
    const std::shared_ptr<const host_process> owner =
        is_host ? host_process::find(packed.process) : nullptr;
    if (is_host && (owner == nullptr || !owner->is_open())) {
        nc_debug("no put and get to a peer's host memory: the system does not let us reach it");
        return UCS_ERR_UNREACHABLE;
    }
    std::unique_ptr<remote_key> key(new (std::nothrow) remote_key(packed, owner));
    if (key == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    // One GPU says whether there is a way at all: one that is known to be used, or will be.
    const int registered = is_host ? -1 : any_registered_device();
    const int device =
        is_host || registered >= 0 ? registered : gpu::platform::instance().current_device();
    if (device >= 0 && !key->reach(device, false)) {
        nc_debug("no put and get to a peer's GPU memory: GPU %d does not reach it", device);
        return UCS_ERR_UNREACHABLE;
    }
    if (!add_key(*key)) {
        return UCS_ERR_NO_MEMORY;
    }
    *rkey_p = handle_of(*key.release());
    *handle_p = nullptr;
    return UCS_OK;
}

ucs_status_t point_by_key(uct_component *, uintptr_t, void *, uint64_t, void **) {
    return UCS_ERR_UNSUPPORTED;
}

ucs_status_t release_key(uct_component *, uintptr_t rkey, void *) {
    auto *const key = reinterpret_cast<remote_key *>(rkey);
    remove_key(*key);
    delete key;
    return UCS_OK;
}

ucs_status_t compare_keys(uct_component *, uintptr_t left, uintptr_t right, const void *,
                          int *result_p) {
    *result_p = left < right ? -1 : left > right ? 1 : 0;
    return UCS_OK;
}

void init_md_vfs(uct_md *) {}

ucs_status_t query_devices(uct_md *md, uct_tl_device_resource **devices_p, unsigned *number_p) {
    auto *device = static_cast<uct_tl_device_resource *>(one_sided_domain::of(md).ucx->ucs_malloc(
        sizeof(uct_tl_device_resource), "cuda_nc devices"));
    *devices_p = device;
    *number_p = device != nullptr ? 1 : 0;
    if (device == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    constexpr int shared_memory = 1;  // UCT_DEVICE_TYPE_SHM: UCX_NET_DEVICES does not concern it
    std::snprintf(device->name, sizeof(device->name), "%s",
                  name_of(one_sided_domain::of(md).served));
    device->type = shared_memory;
    device->sys_device = UINT8_MAX;
    return UCS_OK;
}

void register_component(const ucx_api &ucx, served_memory served) {
    auto *made = new one_sided_component();  // UCX's for ever
    made->ucx = &ucx;
    made->served = served;
    uct_component &component = made->component;
    std::snprintf(component.name, sizeof(component.name), "%s_%s", transport_name, name_of(served));
    component.query_md_resources = query_resources;
    component.md_open = open_md;
    component.cm_open = open_cm;
    component.rkey_unpack = unpack_key;
    component.rkey_ptr = point_by_key;
    component.rkey_release = release_key;
    component.rkey_compare = compare_keys;
    component.md_config.name = served == served_memory::gpu ? "cuda_nc memory domain of GPUs"
                                                            : "cuda_nc memory domain of the host";
    component.md_config.prefix = setting_prefix;
    component.md_config.table = ucx.uct_md_config_table;
    component.md_config.size = 1;
    component.cm_config.name = "";
    component.cm_config.prefix = "";
    component.tl_list = {&component.tl_list, &component.tl_list};
    component.md_vfs_init = init_md_vfs;

    std::snprintf(made->transport.name, sizeof(made->transport.name), "%s", transport_name);
    made->transport.query_devices = query_devices;
    made->transport.iface_open = open_one_sided_iface;
    made->transport.config.name = served == served_memory::gpu ? "cuda_nc transport of GPUs"
                                                               : "cuda_nc transport of host memory";
    made->transport.config.prefix = setting_prefix;
    made->transport.config.table = ucx.uct_iface_config_table;
    made->transport.config.size = sizeof(uct_iface_config);
    ucx.uct_component_register(&component);
    ucx.uct_tl_register(&component, &made->transport);
}

}  // namespace

// What a key says of its allocation does not change, and no other allocation ever has its id.
packed_key registered_memory::key_of(uint64_t address, uint64_t length) {
    {
        std::lock_guard<std::mutex> guard(mutex_);
        if (last_.is_shared == sharing::gpu_memory && allocation_holds(last_, address, length) &&
            gpu::platform::instance().allocation_id(reinterpret_cast<const void *>(address)) ==
                last_.allocation) {
            packed_key key = last_;
            key.begin = address;
            key.length = length;
            return key;
        }
    }
    std::shared_ptr<void> keeper;
    const packed_key key = make_key(device_, address, length, &keeper);
    std::lock_guard<std::mutex> guard(mutex_);
    if (keeper == nullptr) {
        last_ = key;
    } else if (std::find(keepers_.begin(), keepers_.end(), keeper) == keepers_.end()) {
        keepers_.push_back(std::move(keeper));
    }
    return key;
}

bool is_simulated() noexcept {
    return std::strcmp(gpu::platform::instance().name(), "sim") == 0;
}

void register_one_sided(const ucx_api &ucx) {
    register_component(ucx, served_memory::gpu);
    register_component(ucx, served_memory::host);
    nc_debug("puts and gets between GPUs, and of host memory, are served");
}

}  // namespace cuda_nc::uct
