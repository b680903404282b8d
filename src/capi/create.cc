#include "capi/create.hpp"

#include <cinttypes>

#include "capi/error.hpp"

namespace cuda_nc::capi {

ucs_status_t check_result(const cuda_nc_layout_t *layout_p) noexcept {
    return layout_p != nullptr ? UCS_OK : fail(UCS_ERR_INVALID_PARAM, "layout_p: null");
}

ucs_status_t check_pointer(const char *name, const void *pointer, size_t entries) noexcept {
    return pointer != nullptr || entries == 0 ? UCS_OK
                                              : fail(UCS_ERR_INVALID_PARAM, "%s: null", name);
}

ucs_status_t check_count(const char *name, int64_t count) noexcept {
    return count >= 0 ? UCS_OK
                      : fail(UCS_ERR_INVALID_PARAM, "%s: %" PRId64 " is negative", name, count);
}

ucs_status_t check_counts(const char *name, const int64_t *counts, int64_t entries) noexcept {
    const ucs_status_t status = check_pointer(name, counts, static_cast<size_t>(entries));
    if (status != UCS_OK) {
        return status;
    }
    for (int64_t i = 0; i < entries; ++i) {
        if (counts[i] < 0) {
            return fail(UCS_ERR_INVALID_PARAM, "%s[%" PRId64 "]: %" PRId64 " is negative", name, i,
                        counts[i]);
        }
    }
    return UCS_OK;
}

layout_ref one_block(int64_t displacement, int64_t length) {
    layout_builder builder;
    builder.append(displacement, static_cast<uint64_t>(length));
    return builder.finish();
}

ucs_status_t repeat(layout_ref *what_p, int64_t count, int64_t stride) {
    const layout &one = **what_p;
    if (count > 1 && one.packed_size() != 0) {
        using wide = __int128;
        const wide reach = wide(stride) * (count - 1);
        if (wide(one.packed_size()) * count > INT64_MAX ||
            one.upper_bound() + (reach > 0 ? reach : 0) > INT64_MAX ||
            one.lower_bound() + (reach < 0 ? reach : 0) < -INT64_MAX) {
            return fail(UCS_ERR_EXCEEDS_LIMIT,
                        "count: %" PRId64 " times %" PRIu64 " bytes, %" PRId64
                        " bytes apart, exceed 2^63 - 1",
                        count, one.packed_size(), stride);
        }
    }
    layout_ref all = one.repeat(static_cast<uint64_t>(count), stride);
    if (all == nullptr) {
        return fail(UCS_ERR_NO_MEMORY, "out of memory for %" PRId64 " times %s", count,
                    one.describe().c_str());
    }
    *what_p = std::move(all);
    return UCS_OK;
}

ucs_status_t finish(layout_ref what, int64_t extent, cuda_nc_layout_t *layout_p) {
    if (what == nullptr) {
        return fail(UCS_ERR_EXCEEDS_LIMIT,
                    "the bytes in total, the place of one or the distance of two exceeds 2^63 - 1");
    }
    *layout_p = add_handle(std::make_shared<layout_object>(std::move(what), extent));
    return UCS_OK;
}

ucs_status_t finish(layout_ref what, cuda_nc_layout_t *layout_p) {
    int64_t extent = 0;
    if (what != nullptr &&
        __builtin_sub_overflow(what->upper_bound(), what->lower_bound(), &extent)) {
        return fail(UCS_ERR_EXCEEDS_LIMIT,
                    "the lowest and the highest byte are more than 2^63 - 1 "
                    "bytes apart");
    }
    return finish(std::move(what), extent, layout_p);
}

ucs_status_t finish(layout_builder &builder, cuda_nc_layout_t *layout_p) {
    return finish(builder.finish(), layout_p);
}

layout_ref layout_of(const cuda_nc_block_t *blocks, size_t num_blocks) {
    layout_builder builder;
    for (size_t i = 0; i < num_blocks; ++i) {
        builder.append(blocks[i].displacement, blocks[i].length);
    }
    return builder.finish();
}

}  // namespace cuda_nc::capi
