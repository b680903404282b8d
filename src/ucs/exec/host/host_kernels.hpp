// The inner loops of the host executor, once for each instruction set.
//
// A kernel moves whole blocks. It is chosen once per call by the block length, on which it does not
// branch again. Addresses and strides are unsigned and wrap, so strides may be negative or huge,
// and a loop may step past its last block without forming an invalid pointer.
#pragma once

#include <cstdint>

#include "ucs/gpu/direction.hpp"
#include "ucs/layout/layout_view.hpp"

namespace cuda_nc::exec {

using address = uintptr_t;

// count1 rows of count0 blocks of `length` bytes, regular on both sides. No byte of a source block
// is written by the grid.
struct block_grid {
    address target, source;
    uint64_t target_stride0, target_stride1;
    uint64_t source_stride0, source_stride1;
    uint64_t count0, count1;
    uint64_t length;
};

using gpu::direction;

// Blocks [first, end) of a list of more than one block. `laid` is the address of the buffer plus
// the displacement of the pass; `other` is the packed address of block `first`, or for a copy the
// target's counterpart of `laid`.
struct list_range {
    const layout_view *view;
    uint64_t first, end;
    address laid, other;
};

// Whether software prefetches cache lines, and of which side: the one whose blocks lie so far apart
// that the processor's own prefetcher does not follow.
enum class fetch : uint8_t { none, source, target };

using grid_function = void (*)(const block_grid &) noexcept;
using list_function = void (*)(const list_range &) noexcept;

struct host_kernels {
    const char *name;

    // In order: row by row, blocks of a row in order.
    grid_function (*choose_grid)(uint64_t length, fetch ahead) noexcept;

    // For transposes, where dimension 1 is the dense one: an order that uses each cache line once.
    // Only where no two target blocks overlap.
    grid_function (*choose_transpose)(uint64_t length) noexcept;

    // `length` is that of every block, or 0 where it varies. In order.
    list_function (*choose_list)(direction dir, uint64_t length, bool wide) noexcept;
};

extern const host_kernels scalar_kernels;
#ifdef __x86_64__
extern const host_kernels sse2_kernels;
extern const host_kernels avx2_kernels;
extern const host_kernels avx512_kernels;
#elif defined(__aarch64__)
extern const host_kernels neon_kernels;
#endif

// The best set that the processor has and UCX_CUDA_NC_HOST_SIMD allows.
const host_kernels &current_kernels() noexcept;

// For tests: chooses again.
void reload_kernels_for_test() noexcept;

}  // namespace cuda_nc::exec
