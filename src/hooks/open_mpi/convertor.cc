#include "hooks/open_mpi/convertor.hpp"

#include <memory>

#include "hooks/common/gpu_presence.hpp"
#include "hooks/common/policy.hpp"
#include "hooks/common/thread_context.hpp"
#include "hooks/open_mpi/convertor_host.hpp"
#include "hooks/open_mpi/convertor_move.hpp"
#include "hooks/open_mpi/convertor_parts.hpp"
#include "hooks/open_mpi/convertor_tracker.hpp"
#include "hooks/open_mpi/open_mpi.hpp"
#include "hooks/open_mpi/originals.hpp"
#include "ucs/base/log.hpp"
#include "ucs/base/settings.hpp"

namespace cuda_nc::hooks {
namespace {

// What memory holds the first byte; false where there are no bytes.
bool find_memory(const open_mpi &api, const void *datatype, size_t count, const void *buffer,
                 gpu::memory_info *info_p) noexcept {
    gpu::platform &platform = gpu::platform::instance();
    if (buffer != nullptr) {
        *info_p = platform.query(buffer);
        if (info_p->kind == gpu::memory_kind::device) {
            return true;
        }
    }
    int64_t displacement;
    if (!api.first_displacement(datatype, count, &displacement)) {
        return false;
    }
    if (buffer != nullptr && displacement == 0) {
        return true;
    }
    *info_p = platform.query(static_cast<const char *>(buffer) + displacement);
    return true;
}

void forget(const void *convertor) noexcept {
    convertor_tracker &tracker = convertor_tracker::instance();
    if (!tracker.empty()) {
        tracker.forget(convertor);
    }
}

// Tracks a convertor that was prepared for GPU memory, and forgets one that was tracked under the
// same address.
void note(void *convertor, const void *datatype, size_t count, const void *buffer) noexcept {
    const open_mpi *api = opal().api;
    gpu::memory_info info;
    bool on_device = api != nullptr && find_memory(*api, datatype, count, buffer, &info) &&
                     info.kind == gpu::memory_kind::device && api->is_native(convertor);
    if (!on_device) {
        forget(convertor);
        return;
    }
    check_gpu_detection();
    try {
        auto entry = std::make_unique<tracked_convertor>();
        entry->datatype = datatype;
        entry->count = count;
        entry->buffer = const_cast<char *>(static_cast<const char *>(buffer));
        entry->info = info;
        convertor_tracker::instance().remember(convertor, std::move(entry));
    } catch (...) {
        forget(convertor);  // an earlier operation's
        nc_error("no memory to serve an MPI operation on GPU memory: Open MPI's own runs");
    }
}

int32_t prepare(prepare_f original, void *convertor, const void *datatype, size_t count,
                const void *buffer) noexcept {
    if (CUDA_NC_LIKELY(never_sees_gpu_memory())) {
        return original(convertor, datatype, count, buffer);
    }
    if (in_original_start) {  // before the platform is asked, which costs more
        int32_t status = original(convertor, datatype, count, buffer);
        forget(convertor);
        return status;
    }
    if (!sees_gpu_memory()) {
        return original(convertor, datatype, count, buffer);
    }
    int32_t status = original(convertor, datatype, count, buffer);
    note(convertor, datatype, count, buffer);
    return status;
}

// Whether we pack derived types in host memory, too.
bool serves_host_memory() noexcept {
    static const bool keeps =
        opal().api != nullptr && opal().api->packs_wrongly() && config().host_engine != "never";
    return keeps;
}

int32_t move(bool packs, move_f original, void *convertor, iovec *parts, uint32_t *num_parts_p,
             size_t *length_p) noexcept {
    bool asks_for_address = *num_parts_p == 0 || parts[0].iov_base == nullptr;
    const open_mpi *api = opal().api;
    if (api == nullptr || asks_for_address) {
        return original(convertor, parts, num_parts_p, length_p);
    }
    int32_t status;
    auto move_host_memory = [&] {
        return serves_host_memory() &&
               move_on_host(packs, *api, convertor, parts, num_parts_p, length_p, &status);
    };
    if (CUDA_NC_LIKELY(!sees_gpu_memory())) {
        return move_host_memory() ? status : original(convertor, parts, num_parts_p, length_p);
    }
    convertor_tracker &tracker = convertor_tracker::instance();
    tracked_convertor *entry = tracker.empty() ? nullptr : tracker.find(convertor);
    if (entry != nullptr &&
        !api->map().is_prepared_for(convertor, entry->datatype, entry->buffer)) {
        tracker.forget(convertor);
        entry = nullptr;
    }
    if (entry != nullptr) {
        return move_tracked(packs, *api, convertor, *entry, parts, num_parts_p, length_p);
    }
    if (move_host_memory()) {
        return status;
    }
    for (uint32_t part = 0; part < *num_parts_p; ++part) {
        // Where no byte is due, the original alone knows whether the message is complete.
        if (parts[part].iov_len != 0 && is_device_memory(parts[part].iov_base)) {
            return move_by_host(packs, original, convertor, parts, num_parts_p, length_p);
        }
    }
    return original(convertor, parts, num_parts_p, length_p);
}

}  // namespace

int32_t prepare_for_send(void *convertor, const void *datatype, size_t count,
                         const void *buffer) noexcept {
    return prepare(opal().opal_convertor_prepare_for_send, convertor, datatype, count, buffer);
}

int32_t prepare_for_recv(void *convertor, const void *datatype, size_t count,
                         const void *buffer) noexcept {
    return prepare(opal().opal_convertor_prepare_for_recv, convertor, datatype, count, buffer);
}

int32_t convertor_pack(void *convertor, iovec *parts, uint32_t *num_parts_p,
                       size_t *length_p) noexcept {
    return move(true, opal().opal_convertor_pack, convertor, parts, num_parts_p, length_p);
}

int32_t convertor_unpack(void *convertor, iovec *parts, uint32_t *num_parts_p,
                         size_t *length_p) noexcept {
    return move(false, opal().opal_convertor_unpack, convertor, parts, num_parts_p, length_p);
}

int32_t copy_same(const void *datatype, int32_t count, char *destination, char *source) noexcept {
    const open_mpi *api = opal().api;
    gpu::memory_info from, to;
    bool known = sees_gpu_memory() && api != nullptr && count > 0 &&
                 find_memory(*api, datatype, 1, source, &from) &&
                 find_memory(*api, datatype, 1, destination, &to);
    auto either_is = [&](gpu::memory_kind kind) { return from.kind == kind || to.kind == kind; };
    if (known && either_is(gpu::memory_kind::unknown)) {
        return opal().opal_datatype_copy_content_same_ddt(datatype, count, destination, source);
    }
    if (!known || !either_is(gpu::memory_kind::device)) {
        int32_t status;
        if (count > 0 && serves_host_memory() &&
            copy_on_host(*api, datatype, static_cast<size_t>(count), destination, source,
                         &status)) {
            return status;
        }
        return opal().opal_datatype_copy_content_same_ddt(datatype, count, destination, source);
    }
    check_gpu_detection();
    layout_ref what = make_layout(*api, datatype, static_cast<size_t>(count));
    ucs_status_t status =
        what != nullptr ? dt::copy(what, source, destination) : UCS_ERR_UNSUPPORTED;
    if (status != UCS_OK) {
        nc_error("a copy of datatype %s in GPU memory failed: %s", api->name(datatype).c_str(),
                 status_text(status));
        return -1;
    }
    return 0;
}

// The original packs and unpacks piece by piece through host memory.
int32_t move_between(const void *source, size_t source_count, const void *source_type, void *target,
                     size_t target_count, const void *target_type) noexcept {
    const open_mpi *api = opal().api;
    // Of releases that are known (`api`) these bits alone are counts.
    const auto sends = static_cast<int32_t>(source_count),
               receives = static_cast<int32_t>(target_count);
    gpu::memory_info from, to;
    const bool may_serve =
        sees_gpu_memory() && api != nullptr && source_type != target_type && sends > 0 &&
        receives > 0 && find_memory(*api, source_type, 1, source, &from) &&
        find_memory(*api, target_type, 1, target, &to) && from.kind == gpu::memory_kind::device &&
        to.kind == gpu::memory_kind::device;
    if (may_serve) {
        check_gpu_detection();
        const layout_ref sent = make_layout(*api, source_type, static_cast<size_t>(sends)),
                         received = make_layout(*api, target_type, static_cast<size_t>(receives));
        const ucs_status_t status = sent != nullptr && received != nullptr
                                        ? dt::move(sent, source, received, target)
                                        : UCS_ERR_UNSUPPORTED;
        if (status == UCS_OK) {
            return 0;
        }
        if (status != UCS_ERR_UNSUPPORTED) {
            nc_debug("datatype %s cannot be moved to %s within a GPU (%s): by host memory",
                     api->name(source_type).c_str(), api->name(target_type).c_str(),
                     status_text(status));
        }
    }
    return opal().ompi_datatype_sndrcv(source, source_count, source_type, target, target_count,
                                       target_type);
}

}  // namespace cuda_nc::hooks
