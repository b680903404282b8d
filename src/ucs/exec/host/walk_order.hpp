// In which order a walk moves what it is given, and what it fetches ahead.
#pragma once

#include <cstdint>

#include "ucs/exec/host/host_kernels.hpp"
#include "ucs/layout/layout_view.hpp"

namespace cuda_nc::exec {

// Fewer slices than these are not worth the order of a transpose.
constexpr uint64_t least_slices = 4;

uint64_t magnitude(int64_t stride) noexcept;

// The dimension to exchange with dimension 0 so that neighbours in memory are moved together, or
// 0 where type-map order is as good.
unsigned find_dense_dimension(const layout_view &view) noexcept;

// For a layout of one block, repeated.
fetch choose_fetch(const layout_view &view, way direction) noexcept;

// Packed bytes that a walk wants in one call, and whose multiples are the best places to interrupt
// it; a message is cut elsewhere only at a loss of speed, or where parts shorter than `most` bytes
// leave no choice. At least 1.
uint64_t find_unit(const layout_view &view, uint64_t most) noexcept;

}  // namespace cuda_nc::exec
