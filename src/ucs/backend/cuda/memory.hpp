// Memory of a GPU, pinned memory, and memory of another process's GPU.
//
// Allocating and releasing may synchronise the whole device, so callers reuse memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "ucs/base/bits.hpp"
#include "ucs/backend/backends.hpp"
#include "ucs/backend/cuda/context.hpp"
#include "ucs/backend/cuda/errors.hpp"
#include "ucs/gpu/device.hpp"

namespace cuda_nc::gpu::cuda {

// Calls `release`, named `name`, for what was made in the context of `owner`, with that current. In
// a forked child, and where the context or all of CUDA has gone, nothing is left to release.
template <typename F>
void release_in(primary_context &owner, const char *name, F &&release) noexcept {
    if (forked() || !owner.alive()) {
        return;
    }
    current_scope scope(owner.calls(), owner.get());
    if (!scope) {
        if (!torn_down(scope.result())) {
            scope.status();  // logs
        }
        return;
    }
    const cudaError_t result = release();
    if (!torn_down(result)) {
        to_status(result, name);
    }
}

// Bytes to allocate for `size`: whole words of 16 bytes, which kernels read, so that a memory
// checker (compute-sanitizer) finds nothing read behind an allocation of ours.
constexpr size_t in_whole_words(size_t size) noexcept {
    constexpr size_t word = 16;
    return size == 0 ? word : size <= SIZE_MAX - word ? round_up(size, word) : size;
}

// The context of `owner` must be current. The caller destroys *memory_p before `owner`.
ucs_status_t allocate_device(primary_context &owner, size_t size,
                             std::unique_ptr<memory> *memory_p) noexcept;
ucs_status_t allocate_pinned(primary_context &owner, size_t size,
                             std::unique_ptr<memory> *memory_p) noexcept;
ucs_status_t pin(primary_context &owner, void *address, size_t size,
                 std::unique_ptr<memory> *memory_p) noexcept;
ucs_status_t open_handle(primary_context &owner, const ipc_handle &handle,
                         std::unique_ptr<memory> *memory_p) noexcept;
ucs_status_t export_handle(primary_context &owner, const void *address, ipc_handle *handle_p,
                           size_t *offset_p) noexcept;

}  // namespace cuda_nc::gpu::cuda
