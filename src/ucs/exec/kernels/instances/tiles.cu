#include "ucs/exec/kernels/instances/kernels.cuh"

namespace cuda_nc::exec {

const void *tiles_kernel(unsigned word_log2) noexcept {
    return with_word(word_log2, [](auto width) {
        return reinterpret_cast<const void *>(move_tiles_kernel<decltype(width)::value>);
    });
}

}  // namespace cuda_nc::exec
