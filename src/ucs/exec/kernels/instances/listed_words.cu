#include "ucs/exec/kernels/instances/kernels.cuh"

namespace cuda_nc::exec {

const void *listed_words_kernel(unsigned word_log2, bool deep) noexcept {
    return with_word(word_log2, [&](auto width) {
        return words_kernel_of<uniform_locator, decltype(width)::value>(deep);
    });
}

}  // namespace cuda_nc::exec
