// include/cuda_nc/cuda_nc.h: pack, unpack and copy.
#include <algorithm>
#include <optional>

#include "capi/error.hpp"
#include "capi/layout_object.hpp"
#include "capi/side.hpp"
#include "ucs/base/settings.hpp"
#include "ucs/exec/host/host_executor.hpp"
#include "ucs/gpu/layout_move.hpp"

namespace cuda_nc::capi {
namespace {

// ---- by the CPU

// Chunk by chunk through a buffer that stays in the cache.
void copy_on_host(const layout_view &source, const char *from, const layout_view &target,
                  char *to) {
    constexpr uint64_t chunk = 32 << 10;
    alignas(64) char packed[chunk];
    exec::host_cursor reads, writes;
    for (uint64_t done = 0; done < source.packed_size;) {
        const uint64_t length = std::min(chunk, source.packed_size - done);
        reads.pack(source, from, done, packed, length);
        writes.unpack(target, to, done, packed, length);
        done += length;
    }
}

void move_on_host(const side &from, const side &to) {
    const layout_view &source = from.what.view(), &target = to.what.view();
    if (target.kind == shape::contiguous) {
        exec::host_pack(source, from.base, 0, to.base + target.first_displacement,
                        source.packed_size);
    } else if (source.kind == shape::contiguous) {
        exec::host_unpack(target, to.base, 0, from.base + source.first_displacement,
                          target.packed_size);
    } else {
        copy_on_host(source, from.base, target, to.base);
    }
}

// ---- on a stream

ucs_status_t borrow(gpu::device &where, void *stream,
                    std::unique_ptr<gpu::borrowed_stream> *borrowed_p) noexcept {
    const ucs_status_t status = where.borrow_stream(stream, borrowed_p);
    const int ordinal = where.properties().ordinal;
    switch (status) {
        case UCS_OK:
            return UCS_OK;
        case UCS_ERR_INVALID_PARAM:
            return fail(status, "stream: no stream of GPU %d, or its capture has failed", ordinal);
        case UCS_ERR_UNSUPPORTED:
            return fail(status, "stream: the driver is too old (CUDA 12 or later is needed)");
        default:
            return fail(status, "stream: GPU %d: %s", ordinal, status_text(status));
    }
}

// The layout's view for kernels on `where`, and its tables held for a launch.
ucs_status_t begin_use(const object_ref &object, gpu::device &where, gpu::borrowed_stream &on,
                       const layout_view **view_p, table_use *use_p) {
    *view_p = &object->view();
    if (!object->has_tables()) {
        return UCS_OK;
    }
    layout_tables &tables = object->tables();
    *view_p = tables.view_on(where);
    if (*view_p == nullptr && on.is_capturing()) {
        return fail(
            UCS_ERR_UNSUPPORTED,
            "layout: irregular, and not prepared (cuda_nc_layout_prepare) for GPU %d before "
            "its stream was captured",
            where.properties().ordinal);
    }
    if (*view_p == nullptr) {
        const ucs_status_t status = tables.prepare(where, object->what());
        if (status != UCS_OK) {
            return fail(status, "layout: its tables cannot be made on GPU %d: %s",
                        where.properties().ordinal, status_text(status));
        }
        *view_p = tables.view_on(where);
    }
    const ucs_status_t status = tables.begin_use(where, on, use_p);
    return status == UCS_OK
               ? UCS_OK
               : fail(status, "layout: its tables cannot be kept: %s", status_text(status));
}

// A null object: contiguous bytes.
struct object_side {
    const object_ref &object;
    side at;
};

ucs_status_t move_on_gpu(const object_side &from, const object_side &to, gpu::device &where,
                         void *stream) {
    std::unique_ptr<gpu::borrowed_stream> on;
    ucs_status_t status = borrow(where, stream, &on);
    if (status != UCS_OK) {
        return status;
    }
    gpu::layout_move work;
    work.source_base = from.at.base;
    work.target_base = to.at.base;
    work.max_sms = config().max_sms;
    work.is_local = true;
    work.alike = from.at.what.equal(to.at.what);
    work.source = &from.at.what.view();
    work.target = &to.at.what.view();
    const layout &ordered = to.at.what.in_memory_order();
    table_use uses[2];
    if (work.alike && &ordered != &to.at.what) {
        work.target = &ordered.view();
    } else {
        if (to.object != nullptr) {
            status = begin_use(to.object, where, *on, &work.target, &uses[0]);
        }
        if (status == UCS_OK && from.object != nullptr && !work.alike) {
            status = begin_use(from.object, where, *on, &work.source, &uses[1]);
        }
    }
    if (status != UCS_OK) {
        return status;
    }
    status = gpu::launch(*on, work);
    for (table_use &one : uses) {
        one.launched(*on);
    }
    return status == UCS_OK
               ? UCS_OK
               : fail(status, "GPU %d: %s", where.properties().ordinal, status_text(status));
}

ucs_status_t move(object_side from, object_side to, void *stream) {
    ucs_status_t status = to.object != nullptr ? check_target(to.at.name, *to.object) : UCS_OK;
    if (status != UCS_OK || to.at.what.packed_size() == 0) {
        return status;
    }
    status = find_memory(&from.at);
    if (status == UCS_OK) {
        status = find_memory(&to.at);
    }
    gpu::device *where = nullptr;
    if (status == UCS_OK) {
        status = find_device(from.at, to.at, &where);
    }
    if (status != UCS_OK) {
        return status;
    }
    if (where != nullptr) {
        return move_on_gpu(from, to, *where, stream);
    }
    move_on_host(from.at, to.at);
    return UCS_OK;
}

ucs_status_t no_layout(const char *name) noexcept {
    return fail(UCS_ERR_INVALID_PARAM, "%s: no layout", name);
}

char *writable(const void *pointer) noexcept {
    return static_cast<char *>(const_cast<void *>(pointer));
}

}  // namespace
}  // namespace cuda_nc::capi

using namespace cuda_nc::capi;

ucs_status_t cuda_nc_pack(cuda_nc_layout_t layout, const void *buffer, void *packed, void *stream) {
    return guarded([&] {
        const object_ref object = find_object(layout);
        if (object == nullptr) {
            return no_layout("layout");
        }
        return move({object, {"buffer", *object->what(), writable(buffer)}},
                    {nullptr, {"packed", object->packed(), writable(packed)}}, stream);
    });
}

ucs_status_t cuda_nc_unpack(cuda_nc_layout_t layout, const void *packed, void *buffer,
                            void *stream) {
    return guarded([&] {
        const object_ref object = find_object(layout);
        if (object == nullptr) {
            return no_layout("layout");
        }
        return move({nullptr, {"packed", object->packed(), writable(packed)}},
                    {object, {"buffer", *object->what(), writable(buffer)}}, stream);
    });
}

ucs_status_t cuda_nc_copy(cuda_nc_layout_t source_layout, const void *source,
                          cuda_nc_layout_t target_layout, void *target, void *stream) {
    return guarded([&] {
        const object_ref from = find_object(source_layout), to = find_object(target_layout);
        if (from == nullptr || to == nullptr) {
            return no_layout(from == nullptr ? "source_layout" : "target_layout");
        }
        if (from->packed_size() != to->packed_size()) {
            return fail(UCS_ERR_INVALID_PARAM,
                        "target_layout: its packed size differs from source_layout's");
        }
        return move({from, {"source", *from->what(), writable(source)}},
                    {to, {"target", *to->what(), writable(target)}}, stream);
    });
}
