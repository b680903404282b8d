#include "ucs/exec/kernels/launch.hpp"

#include "ucs/exec/kernels/kernels.cuh"

namespace cuda_nc::exec {
namespace {

const void *kernel_of(const kernel_choice &c) {
    switch (c.how) {
        case method::tiles:
            return tiles_kernel(c.word_log2);
        case method::windows:
            return windows_kernel(c.locator);
        default:
            return is_strided(c.locator) ? strided_words_kernel(c.locator, c.word_log2)
                                         : listed_words_kernel(c.locator, c.word_log2);
    }
}

size_t shared_bytes(const kernel_choice &c) {
    if (c.how != method::tiles) {
        return 0;
    }
    size_t one = with_word(
        c.word_log2, [](auto width) { return size_t{tile_shared_bytes<decltype(width)::value>}; });
    return one * c.per_block;
}

cudaError_t launch_part(const part &a, const kernel_choice &c, cudaStream_t stream) {
    uint32_t per_block = c.per_block;
    void *arguments[] = {const_cast<part *>(&a), &per_block, const_cast<tile_shape *>(&c.tiles)};
    return cudaLaunchKernel(kernel_of(c), dim3(c.grid), dim3(c.threads), arguments, shared_bytes(c),
                            stream);
}

}  // namespace

cudaError_t launch_transfer(const gpu::transfer &work, const kernel_limits &limits,
                            cudaStream_t stream) noexcept {
    for (uint64_t done = 0; done < work.length;) {
        part a;
        done += cut_part(work, done, &a);
        kernel_choice c = choose_kernel(a, work.layout.align_log2, limits, work.max_sms);
        cudaError_t error = launch_part(a, c, stream);
        if (error != cudaSuccess) {
            cudaGetLastError();  // not left behind for the application to find
            return error;
        }
    }
    return cudaSuccess;
}

cudaError_t load_kernels() noexcept {
    cudaFuncAttributes attributes;
    cudaError_t error = cudaSuccess;
    auto load = [&](const void *kernel) {
        cudaError_t status = cudaFuncGetAttributes(&attributes, kernel);
        error = error == cudaSuccess ? status : error;
    };
    for (unsigned log2 = 0; log2 <= 4; ++log2) {
        load(tiles_kernel(log2));
    }
    for (unsigned k = 0; k < num_locators; ++k) {
        auto kind = static_cast<locator_kind>(k);
        load(windows_kernel(kind));
        for (unsigned log2 = 0; log2 <= 4; ++log2) {
            load(is_strided(kind) ? strided_words_kernel(kind, log2)
                                  : listed_words_kernel(kind, log2));
        }
    }
    return error;
}

}  // namespace cuda_nc::exec
