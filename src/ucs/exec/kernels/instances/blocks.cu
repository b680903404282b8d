#include "ucs/exec/kernels/instances/kernels.cuh"

namespace cuda_nc::exec {

const void *blocks_kernel(unsigned word_log2) noexcept {
    return with_word(word_log2, [](auto width) {
        return reinterpret_cast<const void *>(move_blocks_kernel<decltype(width)::value>);
    });
}

}  // namespace cuda_nc::exec
