// include/cuda_nc/cuda_nc.h: functions that create regular layouts, and those made of other
// layouts.
#include <cinttypes>

#include "capi/create.hpp"
#include "capi/error.hpp"
#include "ucs/layout/layout.hpp"

namespace cuda_nc::capi {
namespace {

constexpr int most_dims = 64;

ucs_status_t check_dims(int ndims) noexcept {
    return ndims >= 0 && ndims <= most_dims
               ? UCS_OK
               : fail(UCS_ERR_INVALID_PARAM, "ndims: %d is not from 0 to %d", ndims, most_dims);
}

// The elements of a box: dims from the fastest one on.
ucs_status_t repeat_over(layout_ref *what_p, int ndims, const int64_t *counts,
                         const int64_t *strides, bool last_is_fastest) {
    for (int i = 0; i < ndims; ++i) {
        const int d = last_is_fastest ? ndims - 1 - i : i;
        const ucs_status_t status = repeat(what_p, counts[d], strides[d]);
        if (status != UCS_OK) {
            return status;
        }
    }
    return UCS_OK;
}

// Where an array is dense. False: a place in it exceeds 2^63 - 1.
bool dense_strides(int ndims, const int64_t *sizes, int64_t element_size, bool last_is_fastest,
                   int64_t *strides, int64_t *total_p) noexcept {
    int64_t stride = element_size;
    for (int i = 0; i < ndims; ++i) {
        const int d = last_is_fastest ? ndims - 1 - i : i;
        strides[d] = stride;
        if (__builtin_mul_overflow(stride, sizes[d], &stride)) {
            return false;
        }
    }
    *total_p = stride;
    return true;
}

ucs_status_t too_large(const char *name) noexcept {
    return fail(UCS_ERR_EXCEEDS_LIMIT, "%s: the array has more than 2^63 - 1 bytes", name);
}

ucs_status_t create_strided(int ndims, const int64_t *extents, const int64_t *strides,
                            int64_t element_size, cuda_nc_layout_t *layout_p) {
    ucs_status_t status = check_result(layout_p);
    if (status != UCS_OK || (status = check_dims(ndims)) != UCS_OK ||
        (status = check_count("element_size", element_size)) != UCS_OK ||
        (status = check_counts("extents", extents, ndims)) != UCS_OK) {
        return status;
    }
    int64_t dense[most_dims], total;
    if (strides == nullptr) {
        if (!dense_strides(ndims, extents, element_size, true, dense, &total)) {
            return too_large("extents");
        }
        strides = dense;
    }
    layout_ref what = one_block(0, element_size);
    status = repeat_over(&what, ndims, extents, strides, true);
    return status == UCS_OK ? finish(std::move(what), layout_p) : status;
}

ucs_status_t check_box(int ndims, const int64_t *sizes, const int64_t *subsizes,
                       const int64_t *starts) noexcept {
    ucs_status_t status = check_counts("sizes", sizes, ndims);
    if (status != UCS_OK || (status = check_counts("subsizes", subsizes, ndims)) != UCS_OK ||
        (status = check_counts("starts", starts, ndims)) != UCS_OK) {
        return status;
    }
    for (int d = 0; d < ndims; ++d) {
        if (subsizes[d] > sizes[d] || starts[d] > sizes[d] - subsizes[d]) {
            return fail(UCS_ERR_INVALID_PARAM,
                        "starts: elements %" PRId64 " to %" PRId64 " + %" PRId64
                        " of dimension %d, which has %" PRId64,
                        starts[d], starts[d], subsizes[d], d, sizes[d]);
        }
    }
    return UCS_OK;
}

ucs_status_t create_subarray(int ndims, const int64_t *sizes, const int64_t *subsizes,
                             const int64_t *starts, int64_t element_size, int order,
                             cuda_nc_layout_t *layout_p) {
    ucs_status_t status = check_result(layout_p);
    if (status != UCS_OK || (status = check_dims(ndims)) != UCS_OK ||
        (status = check_count("element_size", element_size)) != UCS_OK ||
        (status = check_box(ndims, sizes, subsizes, starts)) != UCS_OK) {
        return status;
    }
    if (order != CUDA_NC_ORDER_C && order != CUDA_NC_ORDER_FORTRAN) {
        return fail(UCS_ERR_INVALID_PARAM, "order: %d is unknown", order);
    }
    const bool last_is_fastest = order == CUDA_NC_ORDER_C;
    int64_t strides[most_dims], extent, begin = 0;
    if (!dense_strides(ndims, sizes, element_size, last_is_fastest, strides, &extent)) {
        return too_large("sizes");
    }
    for (int d = 0; d < ndims && extent != 0; ++d) {
        begin += starts[d] * strides[d];  // within the array
    }
    layout_ref what = one_block(extent != 0 ? begin : 0, element_size);
    status = repeat_over(&what, ndims, subsizes, strides, last_is_fastest);
    return status == UCS_OK ? finish(std::move(what), extent, layout_p) : status;
}

ucs_status_t create_struct(size_t num_members, const cuda_nc_layout_t *members,
                           const int64_t *displacements, cuda_nc_layout_t *layout_p) {
    constexpr uint64_t most_blocks = uint64_t{1} << 31;
    ucs_status_t status = check_result(layout_p);
    if (status != UCS_OK || (status = check_pointer("members", members, num_members)) != UCS_OK ||
        (status = check_pointer("displacements", displacements, num_members)) != UCS_OK) {
        return status;
    }
    layout_builder builder;
    uint64_t blocks = 0;
    for (size_t i = 0; i < num_members; ++i) {
        const object_ref member = find_object(members[i]);
        if (member == nullptr) {
            return fail(UCS_ERR_INVALID_PARAM, "members[%zu]: no layout", i);
        }
        const uint64_t its_blocks = member->what()->total_blocks();
        if (its_blocks > most_blocks - blocks) {
            return fail(UCS_ERR_EXCEEDS_LIMIT, "members: more than 2^31 blocks");
        }
        blocks += its_blocks;
        layout_cursor cursor(*member->what(), 0);
        for (block one = cursor.next(UINT64_MAX); one.length != 0; one = cursor.next(UINT64_MAX)) {
            int64_t at;
            if (__builtin_add_overflow(one.displacement, displacements[i], &at)) {
                return fail(UCS_ERR_EXCEEDS_LIMIT,
                            "displacements[%zu]: a byte would lie beyond 2^63 - 1", i);
            }
            builder.append(at, one.length);
        }
    }
    return finish(builder, layout_p);
}

ucs_status_t create_repeated(cuda_nc_layout_t element, int64_t count, int64_t stride,
                             cuda_nc_layout_t *layout_p) {
    ucs_status_t status = check_result(layout_p);
    if (status != UCS_OK || (status = check_count("count", count)) != UCS_OK) {
        return status;
    }
    const object_ref one = find_object(element);
    if (one == nullptr) {
        return fail(UCS_ERR_INVALID_PARAM, "element: no layout");
    }
    int64_t extent = one->extent();
    if (stride > 0 && __builtin_mul_overflow(count, stride, &extent)) {
        return fail(UCS_ERR_EXCEEDS_LIMIT, "stride: the extent exceeds 2^63 - 1");
    }
    layout_ref what = one->what();
    status = repeat(&what, count, stride);
    return status == UCS_OK ? finish(std::move(what), extent, layout_p) : status;
}

}  // namespace
}  // namespace cuda_nc::capi

using namespace cuda_nc::capi;

ucs_status_t cuda_nc_layout_create_vector(int64_t count, int64_t block_length, int64_t stride,
                                          cuda_nc_layout_t *layout_p) {
    return guarded([&] {
        ucs_status_t status = check_result(layout_p);
        if (status != UCS_OK || (status = check_count("count", count)) != UCS_OK ||
            (status = check_count("block_length", block_length)) != UCS_OK) {
            return status;
        }
        cuda_nc::layout_ref what = one_block(0, block_length);
        status = repeat(&what, count, stride);
        return status == UCS_OK ? finish(std::move(what), layout_p) : status;
    });
}

ucs_status_t cuda_nc_layout_create_subarray(int ndims, const int64_t *sizes,
                                            const int64_t *subsizes, const int64_t *starts,
                                            int64_t element_size, int order,
                                            cuda_nc_layout_t *layout_p) {
    return guarded([&] {
        return create_subarray(ndims, sizes, subsizes, starts, element_size, order, layout_p);
    });
}

ucs_status_t cuda_nc_layout_create_strided(int ndims, const int64_t *extents,
                                           const int64_t *strides, int64_t element_size,
                                           cuda_nc_layout_t *layout_p) {
    return guarded([&] { return create_strided(ndims, extents, strides, element_size, layout_p); });
}

ucs_status_t cuda_nc_layout_create_struct(size_t num_members, const cuda_nc_layout_t *members,
                                          const int64_t *displacements,
                                          cuda_nc_layout_t *layout_p) {
    return guarded([&] { return create_struct(num_members, members, displacements, layout_p); });
}

ucs_status_t cuda_nc_layout_create_repeated(cuda_nc_layout_t element, int64_t count, int64_t stride,
                                            cuda_nc_layout_t *layout_p) {
    return guarded([&] { return create_repeated(element, count, stride, layout_p); });
}

ucs_status_t cuda_nc_layout_create_resized(cuda_nc_layout_t layout, int64_t extent,
                                           cuda_nc_layout_t *layout_p) {
    return guarded([&] {
        const ucs_status_t status = check_result(layout_p);
        const object_ref found = find_object(layout);
        if (status == UCS_OK && found == nullptr) {
            return fail(UCS_ERR_INVALID_PARAM, "layout: no layout");
        }
        return status == UCS_OK ? finish(found->what(), extent, layout_p) : status;
    });
}
