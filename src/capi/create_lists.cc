// include/cuda_nc/cuda_nc.h: functions that create layouts of lists of blocks.
#include <cinttypes>

#include "capi/create.hpp"
#include "capi/error.hpp"

namespace cuda_nc::capi {
namespace {

ucs_status_t create_indexed(int64_t count, const int64_t *lengths, const int64_t *displacements,
                            int64_t element_size, cuda_nc_layout_t *layout_p) {
    ucs_status_t status = check_result(layout_p);
    if (status != UCS_OK || (status = check_count("count", count)) != UCS_OK ||
        (status = check_count("element_size", element_size)) != UCS_OK ||
        (status = check_pointer("displacements", displacements, static_cast<size_t>(count))) !=
            UCS_OK ||
        (lengths != nullptr && (status = check_counts("lengths", lengths, count)) != UCS_OK)) {
        return status;
    }
    layout_builder builder;
    for (int64_t i = 0; i < count; ++i) {
        int64_t at, bytes;
        if (__builtin_mul_overflow(displacements[i], element_size, &at) ||
            __builtin_mul_overflow(lengths != nullptr ? lengths[i] : 1, element_size, &bytes)) {
            return fail(UCS_ERR_EXCEEDS_LIMIT,
                        "displacements[%" PRId64 "]: the block leads beyond 2^63 - 1 bytes", i);
        }
        builder.append(at, static_cast<uint64_t>(bytes));
    }
    return finish(builder, layout_p);
}

ucs_status_t create_iov(const void *base, const ucp_dt_iov_t *iov, size_t num_entries,
                        cuda_nc_layout_t *layout_p) {
    ucs_status_t status = check_result(layout_p);
    if (status != UCS_OK || (status = check_pointer("iov", iov, num_entries)) != UCS_OK) {
        return status;
    }
    layout_builder builder;
    for (size_t i = 0; i < num_entries; ++i) {
        if (iov[i].length != 0 && iov[i].buffer == nullptr) {
            return fail(UCS_ERR_INVALID_PARAM, "iov[%zu].buffer: null", i);
        }
        builder.append(static_cast<int64_t>(reinterpret_cast<uintptr_t>(iov[i].buffer) -
                                            reinterpret_cast<uintptr_t>(base)),
                       iov[i].length);
    }
    return finish(builder, layout_p);
}

}  // namespace

}  // namespace cuda_nc::capi

using namespace cuda_nc::capi;

ucs_status_t cuda_nc_layout_create_indexed(int64_t count, const int64_t *lengths,
                                           const int64_t *displacements, int64_t element_size,
                                           cuda_nc_layout_t *layout_p) {
    return guarded(
        [&] { return create_indexed(count, lengths, displacements, element_size, layout_p); });
}

ucs_status_t cuda_nc_layout_create_blocks(const cuda_nc_block_t *blocks, size_t num_blocks,
                                          cuda_nc_layout_t *layout_p) {
    return guarded([&] {
        ucs_status_t status = check_result(layout_p);
        if (status == UCS_OK) {
            status = check_pointer("blocks", blocks, num_blocks);
        }
        return status == UCS_OK ? finish(layout_of(blocks, num_blocks), layout_p) : status;
    });
}

ucs_status_t cuda_nc_layout_create_iov(const void *base, const ucp_dt_iov_t *iov,
                                       size_t num_entries, cuda_nc_layout_t *layout_p) {
    return guarded([&] { return create_iov(base, iov, num_entries, layout_p); });
}
