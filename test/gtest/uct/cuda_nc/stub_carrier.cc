// The stub as UCX's tables show it.
#include "uct/cuda_nc/stub_network.hpp"

namespace cuda_nc::uct::stub {
namespace {

constexpr size_t most_short = 92;  // bytes, as with UCX's shared memory

endpoint &of(uct_ep *ep) {
    return *reinterpret_cast<endpoint *>(ep);
}

ssize_t send_message(uct_ep *ep, uint8_t id, std::vector<char> bytes) {
    const auto length = static_cast<ssize_t>(bytes.size());
    of(ep).messages.push_back({id, std::move(bytes), of(ep).fenced});
    return length;
}

ucs_status_t put_zcopy(uct_ep *ep, const void *iov, size_t number, uint64_t address, uintptr_t key,
                       void *completion) {
    const auto &part = *static_cast<const uct_iov *>(iov);
    EXPECT_EQ(number, 1u);
    EXPECT_EQ(part.count, 1u);
    if (now->chance(now->full)) {
        return UCS_ERR_NO_RESOURCE;
    }
    if (now->puts_until_refusal >= 0 && now->puts_until_refusal-- == 0) {
        return UCS_ERR_IO_ERROR;
    }
    auto holds = [](void *known, const char *begin, size_t length) {
        auto *one = static_cast<registered *>(known);
        return now->registrations.count(one) != 0 && begin >= one->address &&
               length <= one->length &&
               static_cast<size_t>(begin - one->address) <= one->length - length;
    };
    auto *source = static_cast<const char *>(part.buffer);
    auto *destination = reinterpret_cast<char *>(static_cast<uintptr_t>(address));
    EXPECT_TRUE(holds(part.memh, source, part.length));
    if (!holds(reinterpret_cast<void *>(key), destination, part.length)) {
        return UCS_ERR_IO_ERROR;
    }
    ++now->puts;
    const bool fails = now->puts_until_error >= 0 && now->puts_until_error-- == 0;
    of(ep).puts.push_back({source,
                           {},
                           part.length,
                           destination,
                           static_cast<uct_completion *>(completion),
                           fails ? UCS_ERR_IO_ERROR : UCS_OK});
    return UCS_INPROGRESS;
}

}  // namespace

void network::set_ops(uct_iface_ops &ops) {
    ops.ep_put_zcopy = put_zcopy;
    ops.ep_am_bcopy = [](uct_ep *ep, uint8_t id, uct_pack_callback pack, void *arg,
                         unsigned) -> ssize_t {
        if (now->chance(now->full)) {
            return UCS_ERR_NO_RESOURCE;
        }
        std::vector<char> bytes(8192);
        bytes.resize(pack(bytes.data(), arg));
        return send_message(ep, id, std::move(bytes));
    };
    ops.ep_am_short = [](uct_ep *ep, uint8_t id, uint64_t header, const void *payload,
                         unsigned length) -> ucs_status_t {
        if (now->chance(now->full)) {
            return UCS_ERR_NO_RESOURCE;
        }
        EXPECT_LE(sizeof(header) + length, most_short);
        std::vector<char> bytes(sizeof(header) + length);
        std::memcpy(bytes.data(), &header, sizeof(header));
        std::memcpy(bytes.data() + sizeof(header), payload, length);
        send_message(ep, id, std::move(bytes));
        return UCS_OK;
    };
    ops.ep_fence = [](uct_ep *ep, unsigned) -> ucs_status_t {
        if (now->chance(now->full)) {
            return UCS_ERR_NO_RESOURCE;
        }
        of(ep).fenced = of(ep).written + of(ep).puts.size();
        return UCS_OK;
    };
    ops.ep_pending_add = [](uct_ep *ep, void *request, unsigned) {
        of(ep).pending.push_back(request);
        return UCS_OK;
    };
    ops.ep_pending_purge = [](uct_ep *ep, function callback, void *arg) {
        for (void *request : std::exchange(of(ep).pending, {})) {
            reinterpret_cast<void (*)(void *, void *)>(callback)(request, arg);
        }
    };
    ops.ep_flush = [](uct_ep *ep, unsigned, void *) -> ucs_status_t {
        ++now->flushes;
        return of(ep).pending.empty() && !now->chance(now->full) ? UCS_OK : UCS_ERR_NO_RESOURCE;
    };
    ops.iface_flush = [](uct_iface *, unsigned, void *) -> ucs_status_t { return UCS_OK; };
    ops.ep_get_address = [](uct_ep *ep, void *address) {
        std::memcpy(address, &ep, sizeof(ep));
        return UCS_OK;
    };
    ops.iface_get_address = [](uct_iface *own, void *address) {
        std::memcpy(address, &own, sizeof(own));
        return UCS_OK;
    };
    ops.iface_progress_enable = ops.iface_progress_disable = [](uct_iface *, unsigned) {};
    ops.iface_progress = [](uct_iface *own) {
        return now->receive(reinterpret_cast<iface *>(own));
    };
    ops.iface_query = [](uct_iface *, uct_iface_attr *attr) {
        attr->cap.flags = cap_flag::am_short | cap_flag::am_bcopy | cap_flag::pending |
                          cap_flag::put_zcopy | now->reaches | now->connects;
        attr->cap.am.max_short = most_short;
        attr->cap.am.max_bcopy = 8192;
        attr->cap.put.max_zcopy = 1 << 30;
        attr->cap.put.max_iov = 1;
        attr->iface_addr_len = attr->ep_addr_len = sizeof(void *);
        return UCS_OK;
    };
}

network::network() {
    gpu::device *device = gpu::platform::instance().get_device(0);
    EXPECT_EQ(device->create_stream(&stream), UCS_OK);
    EXPECT_EQ(device->create_event(&event), UCS_OK);
    set_api();
}

void network::set_api() {
    api.which = release::v1_22;
    api.uct_md_iface_config_read = [](uct_md *, const char *, const char *, const char *,
                                      uct_iface_config **config_p) {
        *config_p = nullptr;
        return UCS_OK;
    };
    api.uct_config_release = [](void *) {};
    api.uct_iface_open = [](uct_md *, void *, const uct_iface_params *, const uct_iface_config *,
                            uct_iface **iface_p) {
        now->ifaces.push_back(std::make_unique<iface>());
        uct_iface *made = &now->ifaces.back()->base.super;
        now->set_ops(made->ops);
        *iface_p = made;
        return UCS_OK;
    };
    api.uct_iface_close = [](uct_iface *closed) {
        reinterpret_cast<iface *>(closed)->closed = true;
    };
    api.uct_iface_set_am_handler = [](uct_iface *at, uint8_t id, uct_am_callback callback,
                                      void *arg, uint32_t flags) {
        auto &base = *reinterpret_cast<uct_base_iface *>(at);
        base.am[id] = {callback, arg, flags};
        return UCS_OK;
    };
    api.uct_ep_create = [](const uct_ep_params *params, uct_ep **ep_p) {
        auto *made = new endpoint();
        made->super.iface = params->iface;
        if (params->field_mask & ep_param::iface_addr) {
            std::memcpy(&made->target, params->iface_addr, sizeof(made->target));
        }
        now->endpoints.insert(made);
        *ep_p = &made->super;
        return UCS_OK;
    };
    api.uct_ep_destroy = [](uct_ep *gone) {
        endpoint *ep = &of(gone);
        now->endpoints.erase(ep);
        for (put &one : ep->puts) {
            if (!one.ended) {
                one.result = UCS_ERR_CANCELED;
                now->end(one);
            }
        }
        delete ep;
    };
    api.uct_ep_connect_to_ep_v2 = [](uct_ep *ep, const void *, const void *address,
                                     const void *params) {
        uct_ep *other;
        std::memcpy(&other, address, sizeof(other));
        of(ep).target = reinterpret_cast<iface *>(other->iface);
        const auto &all = *static_cast<const uct_ep_connect_to_ep_params *>(params);
        EXPECT_TRUE((all.field_mask & connect_param::ep_addr_length) == 0 ||
                    all.ep_addr_length == sizeof(other));
        return UCS_OK;
    };
    api.uct_worker_progress_register_safe = [](void *, unsigned (*function)(void *), void *arg,
                                               unsigned, int *id_p) {
        if (*id_p != -1) {
            return;  // it is there already
        }
        *id_p = now->next_callback++;
        now->callbacks[*id_p] = {function, arg};
    };
    api.uct_worker_progress_unregister_safe = [](void *, int *id_p) {
        now->callbacks.erase(*id_p);
        *id_p = -1;
    };
    api.uct_md_mem_reg = [](uct_md *, void *address, size_t length, unsigned flags,
                            void **memh_p) -> ucs_status_t {
        EXPECT_TRUE(flags & mem_flag::remote_put);
        if (!now->takes_gpu_memory) {
            return UCS_ERR_IO_ERROR;
        }
        auto *made = new registered{static_cast<char *>(address), length};
        now->registrations.insert(made);
        ++now->registered_ever;
        *memh_p = made;
        return UCS_OK;
    };
    api.uct_md_mem_dereg = [](uct_md *, void *memh) {
        auto *one = static_cast<registered *>(memh);
        EXPECT_EQ(now->registrations.erase(one), 1u);
        delete one;
        return UCS_OK;
    };
    api.uct_md_mkey_pack = [](uct_md *, void *memh, void *key) {
        std::memcpy(key, &memh, sizeof(memh));
        return UCS_OK;
    };
    api.uct_rkey_unpack = [](uct_component *, const void *key, uct_rkey_bundle *bundle) {
        void *memh;
        std::memcpy(&memh, key, sizeof(memh));
        *bundle = {reinterpret_cast<uintptr_t>(memh), bundle, nullptr};
        EXPECT_TRUE(now->keys.insert(bundle).second);
        return UCS_OK;
    };
    api.uct_rkey_release = [](uct_component *, const uct_rkey_bundle *bundle) {
        EXPECT_EQ(now->keys.erase(bundle->handle), 1u);
        return UCS_OK;
    };
}

}  // namespace cuda_nc::uct::stub
