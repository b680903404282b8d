// Chooses the order in which a walk moves blocks, and what it prefetches.
#pragma once

#include <cstdint>

#include "ucs/base/bits.hpp"
#include "ucs/exec/host/host_kernels.hpp"
#include "ucs/layout/layout_view.hpp"

namespace cuda_nc::exec {

// Least slices for which the order of a transpose pays.
constexpr uint64_t least_slices = 4;

// The dimension to exchange with dimension 0, so that neighbours in memory are moved together. 0:
// type-map order is as good.
unsigned find_dense_dimension(const layout_view &view) noexcept;

// What to prefetch, for a layout of one block that is repeated.
fetch choose_fetch(const layout_view &view, direction dir) noexcept;

// The packed bytes that a walk should move in one call: multiples of them are the best places to
// cut a message; cuts elsewhere cost speed. At most `most` bytes where that is possible; at least
// 1.
uint64_t find_unit(const layout_view &view, uint64_t most) noexcept;

}  // namespace cuda_nc::exec
