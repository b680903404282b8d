// What the functions share that create layouts. All note why they fail.
#pragma once

#include <cstdint>

#include "capi/layout_object.hpp"
#include "cuda_nc/cuda_nc.h"
#include "ucs/layout/layout.hpp"

namespace cuda_nc::capi {

// ---- parameters, by name

ucs_status_t check_result(const cuda_nc_layout_t *layout_p) noexcept;
// Null is right where there are no entries.
ucs_status_t check_pointer(const char *name, const void *pointer, size_t entries) noexcept;
ucs_status_t check_count(const char *name, int64_t count) noexcept;  // not negative
ucs_status_t check_counts(const char *name, const int64_t *counts, int64_t entries) noexcept;

// ---- layouts; they throw std::bad_alloc

// Displacement and length are in range.
layout_ref one_block(int64_t displacement, int64_t length);
// In place of *what_p.
ucs_status_t repeat(layout_ref *what_p, int64_t count, int64_t stride);

// The new handle. Without an extent: from the lowest to the highest byte.
ucs_status_t finish(layout_ref what, int64_t extent, cuda_nc_layout_t *layout_p);
ucs_status_t finish(layout_ref what, cuda_nc_layout_t *layout_p);
ucs_status_t finish(layout_builder &builder, cuda_nc_layout_t *layout_p);

// Null: the total, or a place, exceeds 2^63 - 1.
layout_ref layout_of(const cuda_nc_block_t *blocks, size_t num_blocks);

}  // namespace cuda_nc::capi
