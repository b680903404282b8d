// Moves the bytes of a layout in host memory: on the calling thread, or, where
// UCX_CUDA_NC_HOST_THREADS asks for it, long ranges on a few threads. A call returns when all is
// moved.
//
// All calls move packed bytes [packed_offset, packed_offset + length) of `source`, which must lie
// within packed_size. Blocks that overlap are read (pack) or written (unpack) in type-map order.
// Nothing outside the blocks is ever written. None throws, none allocates but for threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ucs/exec/host/host_kernels.hpp"
#include "ucs/layout/layout_view.hpp"

namespace cuda_nc::exec {

// Laid-out bytes at `base` -> `packed`.
void host_pack(const layout_view &source, const void *base, uint64_t packed_offset, void *packed,
               uint64_t length) noexcept;

// `packed` -> laid-out bytes at `base`.
void host_unpack(const layout_view &target, void *base, uint64_t packed_offset, const void *packed,
                 uint64_t length) noexcept;

// Laid-out bytes at `source_base` -> bytes laid out alike at `target_base`; no overlap between the
// two buffers.
void host_copy(const layout_view &both, const void *source_base, void *target_base,
               uint64_t packed_offset, uint64_t length) noexcept;

// One message that comes in pieces, by one direction: remembers where the last one ended, so that
// the next need not look for it. Used by one thread at a time; the layout must not change between
// two calls of begin().
class host_cursor {
  public:
    // A new message.
    void begin() noexcept { next_ = nowhere; }

    // As the functions above, at any offset; ascending is fast. Always on the calling thread: UCP's
    // pieces are too short for more.
    void pack(const layout_view &source, const void *base, uint64_t packed_offset, void *packed,
              uint64_t length) noexcept;
    void unpack(const layout_view &target, void *base, uint64_t packed_offset, const void *packed,
                uint64_t length) noexcept;

  private:
    static constexpr uint64_t nowhere = UINT64_MAX;
    static constexpr size_t walk_bytes = 192;

    template <way Way>
    void move(const layout_view &view, address laid, uint64_t packed_offset, address packed,
              uint64_t length) noexcept;

    uint64_t next_ = nowhere;  // packed offset at which the walk stands
    alignas(8) unsigned char walk_[walk_bytes];
};

// The instruction set in use: "avx512", "avx2", "sse2" or "scalar"; limited by
// UCX_CUDA_NC_HOST_SIMD.
const char *host_simd_name() noexcept;

}  // namespace cuda_nc::exec
