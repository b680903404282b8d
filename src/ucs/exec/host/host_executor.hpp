// Moves the bytes of a layout in host memory, on the calling thread; long ranges on several threads
// where UCX_CUDA_NC_HOST_THREADS asks for them. A call returns when all bytes are moved.
//
// All calls move packed bytes [packed_offset, packed_offset + length) of `source`, which must lie
// within packed_size. Blocks that overlap are read (pack) or written (unpack) in type-map order.
// Nothing outside the blocks is ever written. No call throws; only starting threads allocates.
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

// Packs or unpacks one message in pieces. Remembers where the last piece ended, so that the next
// one needs no search. Used by one thread at a time. Between two calls of begin() layout and
// direction must not change.
class host_cursor {
  public:
    // Starts a new message.
    void begin() noexcept { next_ = nowhere; }

    // As the functions above. Any order of offsets is allowed; ascending is fast. Always on the
    // calling thread: UCP's fragments are too short for more.
    void pack(const layout_view &source, const void *base, uint64_t packed_offset, void *packed,
              uint64_t length) noexcept;
    void unpack(const layout_view &target, void *base, uint64_t packed_offset, const void *packed,
                uint64_t length) noexcept;

  private:
    static constexpr uint64_t nowhere = UINT64_MAX;
    static constexpr size_t walk_bytes = 192;

    template <direction Dir>
    void move(const layout_view &view, address laid, uint64_t packed_offset, address packed,
              uint64_t length) noexcept;

    uint64_t next_ = nowhere;  // packed offset at which the walk stands
    alignas(8) unsigned char walk_[walk_bytes];
};

// The instruction set in use: "avx512", "avx2", "sse2" or "scalar"; limited by
// UCX_CUDA_NC_HOST_SIMD.
const char *host_simd_name() noexcept;

}  // namespace cuda_nc::exec
