#include "ucp/dt/datatype.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>

#include "ucp/dt/address.hpp"
#include "ucp/dt/cancelled_state.hpp"
#include "ucp/dt/followed_send.hpp"
#include "ucp/dt/known_overlaps.hpp"
#include "ucp/dt/request_state.hpp"
#include "ucp/dt/ucp_api.hpp"
#include "ucs/base/compiler.hpp"
#include "ucs/base/log.hpp"
#include "ucs/exec/host/disjoint.hpp"

namespace cuda_nc::dt {
namespace {

// The layout of `count` elements. It lives as long as its type, so readers need no lock.
struct repetition {
    size_t count;
    layout_ref all;
    const repetition *next;
};

class generic_type {
  public:
    generic_type(layout_ref element, int64_t extent) noexcept
        : element_(std::move(element)), extent_(extent) {}

    ~generic_type() {
        for (const repetition *one = repetitions_.load(); one != nullptr;) {
            delete std::exchange(one, one->next);
        }
    }

    // The layout of `count` elements. Null: more than 2^63 - 1 bytes, or no memory. `share`: the
    // result may outlive the type.
    layout_ref repeat(size_t count, bool share) noexcept;

    const layout &element() const noexcept { return *element_; }

    // Whether some byte is of two blocks of `all`, which are `count` elements. May take long for a
    // count for the first time. Throws std::bad_alloc.
    bool overlaps(size_t count, const layout &all);

    void hold() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }

    // The last reference destroys UCP's object, through which UCP calls finish().
    void release() noexcept;

    const ucp_api *ucp = nullptr;
    ucp_datatype_t datatype = 0;
    bool destroyed = false;       // by its owner; messages under way keep it
    bool checks_targets = false;  // it receives nothing where that would write a byte twice

  private:
    static constexpr unsigned max_repetitions = 64;

    layout_ref element_;
    int64_t extent_;
    std::atomic<unsigned> references_{1};
    std::atomic<unsigned> num_repetitions_{0};
    std::atomic<const repetition *> last_{nullptr};
    std::atomic<const repetition *> repetitions_{nullptr};
    known_overlaps known_overlaps_;
};

// By UCP's handle: types that somebody holds, so that a receive that is cancelled finds its own
// after the owner has destroyed it.
struct registry {
    std::mutex mutex;
    std::unordered_map<ucp_datatype_t, generic_type *> types;
};

registry &get_registry() {
    static auto *only = new registry;
    return *only;
}

void generic_type::release() noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) {
        return;
    }
    {
        registry &all = get_registry();
        std::lock_guard<std::mutex> guard(all.mutex);
        all.types.erase(datatype);  // before UCX may use the handle again
    }
    const ucp_api *its_ucp = ucp;
    const ucp_datatype_t handle = datatype;
    delete this;
    its_ucp->dt_destroy(handle);
}

// Not `share`: a reference that owns nothing, which saves two atomic operations a message. It is
// enough for messages in host memory, which hold the type.
layout_ref as_reference(const layout_ref &owner, bool share) noexcept {
    return share ? owner : layout_ref(layout_ref(), owner.get());
}

layout_ref generic_type::repeat(size_t count, bool share) noexcept {
    const repetition *known = last_.load(std::memory_order_acquire);
    if (CUDA_NC_LIKELY(known != nullptr && known->count == count)) {
        return as_reference(known->all, share);
    }
    for (known = repetitions_.load(std::memory_order_acquire); known != nullptr;
         known = known->next) {
        if (known->count == count) {
            last_.store(known, std::memory_order_release);
            return as_reference(known->all, share);
        }
    }
    layout_ref all;
    try {
        all = element_->repeat(count, extent_);
    } catch (const std::bad_alloc &) {
        return nullptr;
    }
    if (all == nullptr ||
        num_repetitions_.fetch_add(1, std::memory_order_relaxed) >= max_repetitions) {
        return all;
    }
    auto *made = new (std::nothrow) repetition{count, all, nullptr};
    if (made != nullptr) {
        made->next = repetitions_.load(std::memory_order_relaxed);
        while (!repetitions_.compare_exchange_weak(made->next, made, std::memory_order_acq_rel)) {
        }
        last_.store(made, std::memory_order_release);
    }
    return all;
}

bool generic_type::overlaps(size_t count, const layout &all) {
    const __int128 span = static_cast<__int128>(element_->upper_bound()) - element_->lower_bound();
    const bool lie_apart = extent_ >= span || extent_ <= -span;
    const uint64_t asked = lie_apart ? std::min<uint64_t>(count, 1) : count;
    return known_overlaps_.find(asked, [&] {
        return exec::find_overlap(asked == 1 ? *element_ : all) == exec::overlap::some;
    });
}

// The message's layout, null where that cannot be had, and the memory that it lies in. Logs an
// error where it cannot be served.
gpu::memory_info locate(generic_type &type, const void *buffer, size_t count, layout_ref *all_p) {
    *all_p = type.repeat(count, false);
    if (*all_p == nullptr) {
        nc_error("%zu elements of a datatype have more than 2^63 - 1 bytes, or there is no memory",
                 count);
        return {gpu::memory_kind::unknown, -1};
    }
    gpu::memory_info info = memory_of(**all_p, buffer);
    if (info.kind == gpu::memory_kind::unknown) {
        nc_error("buffer %p lies in GPU memory of an unknown kind, which is not served", buffer);
    } else if (!gpu::is_on_host(info.kind) && all_p->use_count() == 0) {
        *all_p = type.repeat(count, true);  // a work list may outlive the type
    }
    return info;
}

// Whether a receive would write a byte twice. Logs an error then.
bool is_refused(generic_type &type, size_t count, const layout &all) noexcept try {
    if (CUDA_NC_LIKELY(!type.checks_targets || !type.overlaps(count, all))) {
        return false;
    }
    nc_error("a receive of %zu elements of a datatype that covers a byte twice", count);
    return true;
} catch (const std::bad_alloc &) {
    return false;
}

// What UCP is to keep as the message's state; null where the message cannot be served.
template <bool packs>
void *start(void *context, void *buffer, size_t count) {
    auto &type = *static_cast<generic_type *>(context);
    layout_ref all;
    gpu::memory_info info = locate(type, buffer, count, &all);
    request_state *made = nullptr;
    if (all != nullptr && (packs || !is_refused(type, count, *all))) {
        made = packs ? request_state::start_pack(std::move(all), buffer, info)
                     : request_state::start_unpack(std::move(all), buffer, info);
    }
    if (made == nullptr) {
        return nullptr;
    }
    type.hold();
    made->user = &type;
    return made->to_ucx();
}

void finish(void *state);

void *start_pack(void *context, const void *buffer, size_t count) {
    void *state = start<true>(context, const_cast<void *>(buffer), count);
    if (state == nullptr) {
        // UCP's sender cannot fail here, and must not deliver wrong bytes.
        NC_LOG(log_level::fatal, "a message of %zu elements at %p cannot be sent", count, buffer);
        std::abort();
    }
    followed_send::note_state(state, finish);
    return state;
}

// Null is a state of size 0: UCP then ends the receive with UCS_ERR_MESSAGE_TRUNCATED.
void *start_unpack(void *context, void *buffer, size_t count) {
    void *state = start<false>(context, buffer, count);
    if (state == nullptr) {
        nc_error("a message of %zu elements at %p cannot be received", count, buffer);
    }
    return state;
}

size_t packed_size(void *state) {
    return state != nullptr ? request_state::from_ucx(state)->packed_size() : 0;
}

size_t pack(void *state, size_t offset, void *destination, size_t max_length) {
    return request_state::from_ucx(state)->pack(offset, destination, max_length);
}

ucs_status_t unpack(void *state, size_t offset, const void *source, size_t length) {
    return state != nullptr ? request_state::from_ucx(state)->unpack(offset, source, length)
                            : UCS_ERR_UNSUPPORTED;
}

void finish(void *state) {
    if (state != nullptr) {
        note_finish(state);
        followed_send::note_finish(state);
        request_state *ended = request_state::to_finish(state);
        if (CUDA_NC_UNLIKELY(ended == nullptr)) {
            return;
        }
        auto *type = static_cast<generic_type *>(ended->user);
        ended->finish();
        type->release();
    }
}

const ucp_generic_dt_ops_t operations = {start_pack, start_unpack, packed_size,
                                         pack,       unpack,       finish};

}  // namespace

ucs_status_t create(layout_ref element, int64_t extent, ucp_datatype_t *datatype_p,
                    const void *caller) noexcept {
    if (element == nullptr || datatype_p == nullptr) {
        return UCS_ERR_INVALID_PARAM;
    }
    const caller_ucx found = ucx_of(caller);
    return found.is_certain() ? create_in(*found.ucx, std::move(element), extent, datatype_p, true)
                              : UCS_ERR_UNSUPPORTED;
}

ucs_status_t create_in(const ucx_instance &ucx, layout_ref element, int64_t extent,
                       ucp_datatype_t *datatype_p, bool checks_targets) noexcept {
    const ucp_api &ucp = ucp_of(ucx);
    if (ucp.dt_create_generic == nullptr || ucp.dt_destroy == nullptr) {
        return UCS_ERR_UNSUPPORTED;
    }
    auto *type = new (std::nothrow) generic_type(std::move(element), extent);
    if (type == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    type->ucp = &ucp;
    type->checks_targets = checks_targets;
    ucs_status_t status = ucp.dt_create_generic(&operations, type, &type->datatype);
    if (status != UCS_OK) {
        delete type;
        return status;
    }
    *datatype_p = type->datatype;
    try {
        registry &all = get_registry();
        std::lock_guard<std::mutex> guard(all.mutex);
        all.types[type->datatype] = type;
    } catch (const std::bad_alloc &) {
        type->release();
        return UCS_ERR_NO_MEMORY;
    }
    return UCS_OK;
}

void destroy(ucp_datatype_t datatype) noexcept {
    generic_type *type = nullptr;
    {
        registry &all = get_registry();
        std::lock_guard<std::mutex> guard(all.mutex);
        auto found = all.types.find(datatype);
        if (found != all.types.end() && !found->second->destroyed) {
            type = found->second;
            type->destroyed = true;
        }
    }
    if (type == nullptr) {
        nc_error("datatype 0x%llx was not made here, or is destroyed already",
                 static_cast<unsigned long long>(datatype));
        return;
    }
    type->release();
}

bool find_bytes(ucp_datatype_t datatype, uint64_t count, message_bytes *bytes_p) noexcept {
    registry &all = get_registry();
    std::lock_guard<std::mutex> guard(all.mutex);
    auto found = all.types.find(datatype);
    if (found == all.types.end()) {
        return false;
    }
    const layout &element = found->second->element();
    *bytes_p = {count * element.packed_size(), element.lower_bound()};
    return true;
}

const ucp_generic_dt_ops_t *find_operations(ucp_datatype_t datatype) noexcept {
    registry &all = get_registry();
    std::lock_guard<std::mutex> guard(all.mutex);
    return all.types.count(datatype) != 0 ? &operations : nullptr;
}

}  // namespace cuda_nc::dt
