// Messages as NVTX ranges, which NVIDIA's tools (Nsight Systems) show beside kernels and copies.
// Domain "ucx-cuda-nc"; a range's payload is the message's bytes. Without the toolkit's header
// nvtx3/nvToolsExt.h at build time nothing of this exists.
//
// All functions are thread safe.
#pragma once

#include <cstdint>

namespace cuda_nc {

#ifdef HAVE_NVTX

// Whether a tool listens. Decided at the first call, for the process: tools attach when a process
// starts. NVTX looks for the tool then, which may load a library.
bool nvtx_attached() noexcept;

// Only where a tool listens. `name` is kept: a literal.
// A range may end on another thread than it began on. At most 65536 are open at a time; a range
// beyond that is not shown.
void nvtx_begin(const char *name, uint64_t id, uint64_t bytes) noexcept;
void nvtx_end(const char *name, uint64_t id) noexcept;
void nvtx_mark(const char *name, uint64_t bytes) noexcept;

#else

inline bool nvtx_attached() noexcept {
    return false;
}
inline void nvtx_begin(const char *, uint64_t, uint64_t) noexcept {}
inline void nvtx_end(const char *, uint64_t) noexcept {}
inline void nvtx_mark(const char *, uint64_t) noexcept {}

#endif

}  // namespace cuda_nc
