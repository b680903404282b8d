#include "ucs/exec/kernels/launch.hpp"

#include "ucs/exec/kernels/instances/kernels.cuh"

namespace cuda_nc::exec {
namespace {

const void *kernel_of(const kernel_choice &c, bool packing) {
    switch (c.how) {
        case method::tiles:
            return tiles_kernel(c.word_log2);
        case method::windows:
            return windows_kernel(c.locator);
        case method::pieces:
            return pieces_kernel(c.locator);
        case method::units:
            return units_kernel(packing, c.word_log2);
        case method::blocks:
            return blocks_kernel(c.word_log2);
        default:
            return c.locator == locator_kind::uniform
                       ? listed_words_kernel(c.word_log2, c.deep)
                       : strided_words_kernel(c.locator, c.word_log2, c.deep);
    }
}

size_t shared_bytes(const kernel_choice &c) {
    if (c.how == method::units) {
        return c.threads / warp_lanes * sizeof(unit_table);
    }
    if (c.how != method::tiles) {
        return c.reserve;
    }
    size_t one = with_word(
        c.word_log2, [](auto width) { return size_t{tile_shared_bytes<decltype(width)::value>}; });
    return one * c.per_thread_block;
}

cudaError_t launch_part(loaded_kernels &kernels, const part &a, const kernel_choice &c,
                        end_mark end, bool early, cudaStream_t stream) {
    uint32_t share = c.how == method::units ? c.unit_log2 : c.per_thread_block;
    const void *extra = c.how == method::pieces   ? static_cast<const void *>(&c.pieces)
                        : c.how == method::blocks ? static_cast<const void *>(&c.blocks)
                                                  : &c.tiles;
    void *arguments[] = {const_cast<part *>(&a), &end, &share, const_cast<void *>(extra)};
    // An early start saves about a microsecond of each launch; the kernel itself waits for the end
    // of the one before it (await_predecessor).
    const launch_shape shape = {c.grid, c.threads, shared_bytes(c), early};
    return kernels.launch(kernel_of(c, a.dir == gpu::direction::pack), shape, arguments, stream);
}

}  // namespace

cudaError_t launch_transfer(loaded_kernels &kernels, const gpu::transfer &work,
                            const kernel_limits &limits, cudaStream_t stream) noexcept {
    if (work.ends != nullptr) {
        work.ends->count = 0;
    }
    for (uint64_t done = 0; done < work.length;) {
        part a;
        const uint32_t length = cut_part(work, done, &a);
        done += length;
        kernel_choice c = choose_kernel(a, work.layout.align_log2, limits, work.max_sms);
        end_mark end;
        if (work.ends != nullptr && length == work.length) {
            join_thread_blocks(&c, gpu::end_words::most);
            if (c.grid <= gpu::end_words::most) {
                end = {work.ends->words, work.ends->value,
                       work.into_own_memory && !limits.host_caches_memory};
                work.ends->count = c.grid;
            }
        }
        cudaError_t error = launch_part(kernels, a, c, end, limits.starts_early, stream);
        if (error != cudaSuccess) {
            return error;
        }
    }
    return cudaSuccess;
}

cudaError_t load_first_kernel(loaded_kernels &to) noexcept {
    return to.load(windows_kernel(locator_kind::dims1));
}

bool kernels_await_predecessors() noexcept {
    int device = 0, major = 0;
    cudaFuncAttributes attributes;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess ||
        cudaFuncGetAttributes(&attributes, windows_kernel(locator_kind::dims1)) != cudaSuccess) {
        cudaGetLastError();
        return false;
    }
    // The driver may have compiled the kernels from code for an older GPU, which does not wait.
    return major >= 9 && attributes.ptxVersion >= 90;
}

}  // namespace cuda_nc::exec
