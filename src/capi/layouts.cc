// include/cuda_nc/cuda_nc.h: what layouts have in common, their datatypes, the version.
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "capi/create.hpp"
#include "capi/error.hpp"
#include "capi/layout_object.hpp"
#include "ucp/dt/datatype.hpp"
#include "ucs/base/log.hpp"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unknown"
#endif

namespace cuda_nc::capi {
namespace {

ucs_status_t query(const object_ref &what, cuda_nc_layout_attr_t &attr) {
    constexpr uint64_t known = CUDA_NC_LAYOUT_ATTR_PACKED_SIZE | CUDA_NC_LAYOUT_ATTR_EXTENT |
                               CUDA_NC_LAYOUT_ATTR_BOUNDS | CUDA_NC_LAYOUT_ATTR_NUM_BLOCKS |
                               CUDA_NC_LAYOUT_ATTR_OVERLAPS;
    if ((attr.field_mask & ~known) != 0) {
        return fail(UCS_ERR_INVALID_PARAM, "attr: field_mask has unknown bits");
    }
    if (attr.field_mask & CUDA_NC_LAYOUT_ATTR_PACKED_SIZE) {
        attr.packed_size = what->packed_size();
    }
    if (attr.field_mask & CUDA_NC_LAYOUT_ATTR_EXTENT) {
        attr.extent = what->extent();
    }
    if (attr.field_mask & CUDA_NC_LAYOUT_ATTR_BOUNDS) {
        attr.lower_bound = what->what()->lower_bound();
        attr.upper_bound = what->what()->upper_bound();
    }
    if (attr.field_mask & CUDA_NC_LAYOUT_ATTR_NUM_BLOCKS) {
        attr.num_blocks = what->what()->total_blocks();
    }
    if (attr.field_mask & CUDA_NC_LAYOUT_ATTR_OVERLAPS) {
        attr.overlaps = what->is_writable() ? 0 : 1;
    }
    return UCS_OK;
}

ucs_status_t prepare(const object_ref &what, int ordinal) {
    gpu::device *where = gpu::platform::instance().get_device(ordinal);
    if (where == nullptr) {
        return fail(UCS_ERR_NO_DEVICE, "device: there is no GPU %d", ordinal);
    }
    if (!what->has_tables()) {
        return UCS_OK;
    }
    const ucs_status_t status = what->tables().prepare(*where, what->what());
    return status == UCS_OK ? UCS_OK
                            : fail(status, "layout: its tables cannot be made on GPU %d: %s",
                                   ordinal, status_text(status));
}

ucs_status_t create_datatype(layout_ref what, int64_t extent, ucp_datatype_t *datatype_p,
                             const void *caller) {
    const ucs_status_t status = dt::create(std::move(what), extent, datatype_p, caller);
    return status == UCS_OK ? UCS_OK
           : status == UCS_ERR_UNSUPPORTED
               ? fail(status, "the UCX of the caller is not found in this process")
               : fail(status, "UCX makes no datatype: %s", status_text(status));
}

}  // namespace
}  // namespace cuda_nc::capi

using namespace cuda_nc::capi;

const char *cuda_nc_version(void) {
    return PACKAGE_VERSION;
}

const char *cuda_nc_last_error(void) {
    return last_error();
}

ucs_status_t cuda_nc_layout_query(cuda_nc_layout_t layout, cuda_nc_layout_attr_t *attr) {
    return guarded([&] {
        const object_ref what = find_object(layout);
        return what == nullptr   ? fail(UCS_ERR_INVALID_PARAM, "layout: no layout")
               : attr == nullptr ? fail(UCS_ERR_INVALID_PARAM, "attr: null")
                                 : query(what, *attr);
    });
}

ucs_status_t cuda_nc_layout_prepare(cuda_nc_layout_t layout, int device) {
    return guarded([&] {
        const object_ref what = find_object(layout);
        return what != nullptr ? prepare(what, device)
                               : fail(UCS_ERR_INVALID_PARAM, "layout: no layout");
    });
}

void cuda_nc_layout_destroy(cuda_nc_layout_t layout) {
    if (layout != nullptr && remove_handle(layout) == nullptr) {
        nc_error("cuda_nc_layout_destroy: %p is no layout, or was destroyed already",
                 static_cast<void *>(layout));
    }
}

ucs_status_t cuda_nc_layout_create_dt(cuda_nc_layout_t layout, ucp_datatype_t *datatype_p) {
    const void *caller = __builtin_return_address(0);
    return guarded([&] {
        const object_ref what = find_object(layout);
        return what == nullptr ? fail(UCS_ERR_INVALID_PARAM, "layout: no layout")
               : datatype_p == nullptr
                   ? fail(UCS_ERR_INVALID_PARAM, "datatype_p: null")
                   : create_datatype(what->what(), what->extent(), datatype_p, caller);
    });
}

ucs_status_t cuda_nc_dt_create(const cuda_nc_block_t *blocks, size_t num_blocks, ptrdiff_t extent,
                               ucp_datatype_t *datatype_p) {
    const void *caller = __builtin_return_address(0);
    return guarded([&] {
        if (datatype_p == nullptr) {
            return fail(UCS_ERR_INVALID_PARAM, "datatype_p: null");
        }
        const ucs_status_t status = check_pointer("blocks", blocks, num_blocks);
        if (status != UCS_OK) {
            return status;
        }
        cuda_nc::layout_ref element = layout_of(blocks, num_blocks);
        return element != nullptr
                   ? create_datatype(std::move(element), extent, datatype_p, caller)
                   : fail(UCS_ERR_EXCEEDS_LIMIT,
                          "blocks: the bytes in total, or the place of one, exceed 2^63 - 1");
    });
}

void cuda_nc_dt_destroy(ucp_datatype_t datatype) {
    cuda_nc::dt::destroy(datatype);
}
