#include "hooks/open_mpi/convertor_host.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdlib>
#include <memory>

#include "hooks/common/watched_types.hpp"
#include "hooks/open_mpi/convertor_parts.hpp"
#include "ucp/dt/address.hpp"
#include "ucp/dt/shape_text.hpp"
#include "ucs/base/compiler.hpp"
#include "ucs/base/log.hpp"
#include "ucs/base/statistics.hpp"
#include "ucs/exec/host/disjoint.hpp"
#include "ucs/exec/host/host_executor.hpp"

namespace cuda_nc::hooks {
namespace {

// The layout that we are to move. Null where Open MPI must move it: contiguous bytes, or a layout
// that we do not understand. *made_p holds it where the record does not keep that count.
const counted_layout *find_layout(const open_mpi &api, const void *datatype, size_t count,
                                  uint64_t total, counted_layout *made_p) noexcept {
    const counted_layout *all = find_watched_layout(api, datatype, count, total, made_p);
    const bool served = all != nullptr && all->what->kind() != shape::contiguous &&
                        (total == unknown_size || all->what->packed_size() == total);
    return served ? all : nullptr;
}

void count_moved(const open_mpi &api, const char *operation, const counted_layout &all) noexcept {
    if (CUDA_NC_LIKELY(!statistics_enabled())) {
        return;
    }
    try {
        count_message_slow(operation, dt::shape_text(all.what->view()), "host engine",
                           api.packing_fault(), all.what->packed_size());
    } catch (...) {
        // a lost count harms nobody
    }
}

// Whether the CPU may touch the buffer, and the packed bytes directly or through a bounce buffer.
bool reaches(const layout &what, const char *buffer, const iovec *parts,
             uint32_t num_parts) noexcept {
    if (CUDA_NC_LIKELY(!sees_gpu_memory())) {
        return true;
    }
    return cpu_may_touch(dt::memory_of(what, buffer).kind) &&
           std::none_of(parts, parts + num_parts, [](const iovec &part) {
               return kind_at(part.iov_base) == gpu::memory_kind::unknown;
           });
}

}  // namespace

bool move_on_host(bool packs, const open_mpi &api, void *convertor, iovec *parts,
                  uint32_t *num_parts_p, size_t *length_p, int32_t *status_p) noexcept try {
    convertor_content content;
    counted_layout made;
    if (!api.map().read(convertor, &content) || content.total == 0) {
        return false;
    }
    const counted_layout *all =
        find_layout(api, content.datatype, content.count, content.total, &made);
    if (all == nullptr || !api.is_native(convertor) ||
        !reaches(*all->what, content.buffer, parts, *num_parts_p)) {
        return false;
    }
    const layout_view &view = all->what->view();
    char *const buffer = content.buffer;
    auto move_bytes = [packs, &view, buffer](size_t offset, void *packed, size_t length) noexcept {
        if (packs) {
            exec::host_pack(view, buffer, offset, packed, length);
        } else {
            exec::host_unpack(view, buffer, offset, packed, length);
        }
        return UCS_OK;
    };
    ucs_status_t status = move_parts(packs, content.total, content.position_p, parts, num_parts_p,
                                     length_p, move_bytes);
    if (status != UCS_OK) {
        nc_error("%s host memory failed: packed bytes in GPU memory cannot be copied: %s",
                 packs ? "packing" : "unpacking", status_text(status));
        *status_p = -1;
        return true;
    }
    const bool complete = *content.position_p == content.total;
    if (complete) {
        count_moved(api, packs ? "pack" : "unpack", *all);
    }
    *status_p = complete ? 1 : 0;
    return true;
} catch (...) {
    nc_error("%s host memory failed: no memory for a bounce buffer",
             packs ? "packing" : "unpacking");
    *status_p = -1;
    return true;
}

bool copy_on_host(const open_mpi &api, const void *datatype, size_t count, char *destination,
                  const char *source, int32_t *status_p) noexcept {
    counted_layout made;
    const counted_layout *all = find_layout(api, datatype, count, unknown_size, &made);
    if (all == nullptr || all->what->packed_size() == 0) {
        return false;
    }
    const layout_view &view = all->what->view();
    if (CUDA_NC_LIKELY(!exec::may_overlap(*all->what, destination, source))) {
        exec::host_copy(view, source, destination, 0, view.packed_size);
    } else {
        std::unique_ptr<void, decltype(&std::free)> packed(std::malloc(view.packed_size),
                                                           &std::free);
        if (packed == nullptr) {
            nc_error("copying a datatype onto itself failed: no memory for its %" PRIu64 " bytes",
                     view.packed_size);
            *status_p = -1;
            return true;
        }
        exec::host_pack(view, source, 0, packed.get(), view.packed_size);
        exec::host_unpack(view, destination, 0, packed.get(), view.packed_size);
    }
    count_moved(api, "copy", *all);
    *status_p = 0;
    return true;
}

}  // namespace cuda_nc::hooks
