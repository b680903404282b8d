#include "hooks/mpich/typed_memory.hpp"

#include <algorithm>
#include <new>

#include "hooks/common/gpu_presence.hpp"
#include "hooks/common/policy.hpp"
#include "hooks/common/watched_types.hpp"
#include "hooks/mpich/bypass.hpp"
#include "ucp/dt/address.hpp"
#include "ucp/dt/request_state.hpp"
#include "ucs/base/log.hpp"
#include "ucs/gpu/device.hpp"

namespace cuda_nc::hooks::local {
namespace {

const void *datatype_of(handle type) noexcept {
    return reinterpret_cast<const void *>(static_cast<intptr_t>(static_cast<int>(type)));
}

// Null where it cannot be read.
layout_ref layout_of(handle type, count_t count) {
    if (is_predefined(type)) {
        count_t size = 0;
        return pmpi().Type_size_c(type, &size) == 0 ? one_block(static_cast<uint64_t>(count * size))
                                                    : nullptr;
    }
    const type_record *record = find_watched(*pmpi().mpi, datatype_of(type));
    if (record == nullptr) {
        return nullptr;
    }
    const auto number = static_cast<uint64_t>(count);
    if (const counted_layout *known = record->find(number)) {
        return known->what;
    }
    counted_layout made;
    return record->make(number, unknown_size, &made) ? made.what : nullptr;
}

}  // namespace

bool has_gpu_memory(const void *buffer, handle type, int64_t place) noexcept {
    auto is_device = [](const void *address) {
        return gpu::platform::instance().query(address).kind == gpu::memory_kind::device;
    };
    const void *start = dt::displaced(buffer, place);
    if (CUDA_NC_UNLIKELY(is_device(start))) {
        return true;
    }
    // A derived type's bytes may lie elsewhere. MPICH counts members without bytes among its
    // bounds, so that one of these may be no byte of it.
    intptr_t first = 0, extent = 0;
    return !is_predefined(type) && pmpi().Type_get_true_extent(type, &first, &extent) == 0 &&
           (is_device(dt::displaced(start, first)) ||
            is_device(dt::displaced(start, first + extent - 1)));
}

bool on_gpu(const void *buffer, handle type, count_t count, int64_t place) noexcept {
    if (count <= 0 || buffer == in_place || !has_gpu_memory(buffer, type, place)) {
        return false;
    }
    static const bool is_mpichs = pmpi().mpi->takes_gpu_memory();
    check_gpu_detection();
    if (!is_mpichs) {
        note_gpu_memory();
    }
    return !is_mpichs;
}

bool is_predefined(handle type) noexcept {
    return pmpi().mpi->is_predefined(datatype_of(type));
}

int64_t extent_of(handle type) noexcept {
    intptr_t lower_bound, extent = 0;
    pmpi().Type_get_extent(type, &lower_bound, &extent);
    return extent;
}

dt::packed_memory host_memory(uint64_t size, int gpu) {
    dt::packed_memory made = dt::packed_memory::of_host(gpu, size);
    if (!made.is_held()) {
        throw std::bad_alloc();
    }
    return made;
}

void typed_memory::add(const void *buffer, int64_t place, count_t count, handle type) {
    if (count <= 0) {
        return;
    }
    layout_ref what = layout_of(type, count);
    if (what == nullptr) {
        nc_error("a datatype in GPU memory cannot be served: its layout cannot be read");
        throw failure{comm_, error_other};
    }
    if (what->packed_size() != 0) {
        size_ += what->packed_size();
        parts_.push_back({std::move(what), dt::displaced(buffer, place)});
    }
}

void typed_memory::must(ucs_status_t status) const {
    if (status != UCS_OK) {
        nc_error("an MPI call on GPU memory failed: %s", status_text(status));
        throw failure{comm_, error_other};
    }
}

int typed_memory::gpu() const noexcept {
    if (parts_.empty()) {
        return -1;
    }
    const gpu::memory_info info = dt::memory_of(*parts_.front().what, parts_.front().base);
    return info.kind == gpu::memory_kind::device ? info.device : -1;
}

dt::packed_memory typed_memory::memory_for_packed(bool on_gpu) const {
    const int holder = gpu();
    if (on_gpu && holder >= 0) {
        dt::packed_memory made = dt::packed_memory::of_gpu(holder, size_);
        if (made.is_held()) {
            return made;
        }
    }
    return host_memory(size_, holder);
}

void typed_memory::pack(const dt::packed_place &to) const {
    uint64_t done = 0;
    for (const part &one : parts_) {
        must(dt::pack_all(one.what, one.base, to.after(done)));
        done += one.what->packed_size();
    }
}

void typed_memory::unpack(const dt::packed_place &from, uint64_t length) const {
    uint64_t done = 0;
    for (const part &one : parts_) {
        const uint64_t now = std::min(length - done, one.what->packed_size());
        must(dt::unpack_first(one.what, one.base, from.after(done), now));
        done += now;
    }
}

void typed_memory::lay_out(count_t count, handle type) noexcept {
    if (count <= 0) {
        return;
    }
    intptr_t lower_bound = 0, extent = 0;
    pmpi().Type_get_extent(type, &lower_bound, &extent);
    for (const part &one : parts_) {
        lowest_ = std::min<int64_t>(lowest_, one.what->lower_bound());
        highest_ = std::max<int64_t>(highest_, one.what->upper_bound());
    }
    for (const int64_t element : {int64_t{0}, static_cast<int64_t>(count - 1) * extent}) {
        lowest_ = std::min<int64_t>(lowest_, element + std::min<int64_t>(lower_bound, 0));
        highest_ = std::max<int64_t>(
            highest_, element + std::max<int64_t>(extent, int64_t{lower_bound} + extent));
    }
}

dt::packed_place typed_memory::alike(const part &one, const dt::packed_place &all) const noexcept {
    return all.after(static_cast<uint64_t>(one.what->lower_bound() - lowest_));
}

void typed_memory::copy_to(const dt::packed_place &to) const {
    for (const part &one : parts_) {
        must(one.what->kind() == shape::contiguous
                 ? dt::pack_all(one.what, one.base, alike(one, to))
                 : dt::copy(one.what, one.base, dt::displaced(to.start, -lowest_)));
    }
}

void typed_memory::copy_from(const dt::packed_place &from) const {
    for (const part &one : parts_) {
        must(one.what->kind() == shape::contiguous
                 ? dt::unpack_first(one.what, one.base, alike(one, from), one.what->packed_size())
                 : dt::copy(one.what, dt::displaced(from.start, -lowest_), one.base));
    }
}

}  // namespace cuda_nc::hooks::local
